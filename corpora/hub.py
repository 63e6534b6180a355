"""`data=ir_data`: triples of a hub data set, or of a local copy of it, by the datasets library."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.errors import reading
from corpora.files import made
from corpora.triples import Triple, TripleMaker

REACH_SECONDS = 5.0
REMEDY = "Check data.path (a folder), or data.dataset and data.revision, and data.split."
OFFLINE = "The hub cannot be reached: connect once, or download the data set and give data.path=<folder>."


def triples(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """Return the triples of `data.dataset` at `data.revision`, or of its copy in the folder `data.path`.
    Raises `UserError` where the hub cannot be reached and nothing is cached, for an unknown data set, split or
    revision, and with the row for a record that cannot be used."""
    split, make = load_split(data), TripleMaker(data["columns"], data["name"])
    numbered = enumerate(rows_of(split, split.column_names), 1)
    return list(made(numbered, make, f"{data['path'] or data['dataset']}, row"))


def rows_of(split: Any, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of some columns, read many at a time."""
    for batch in split.select_columns(names).iter(batch_size=1000):
        yield from (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True))


def load_split(data: dict[str, Any]) -> Any:
    """Return the split as a `datasets.Dataset`, its rows on disk.
    data: dataset, split, revision and path; subset and files of the data set, where it has such."""
    import datasets

    path = data["path"]
    offline = not path and not hub_reachable()
    datasets.disable_progress_bars()
    was_offline = datasets.config.HF_HUB_OFFLINE
    chosen = {} if path else {"name": data.get("subset"), "data_files": data.get("files")}
    try:
        datasets.config.HF_HUB_OFFLINE = was_offline or offline  # what is cached still loads, without long retries
        with reading(f"{path or data['dataset']}, split {data['split']}", OFFLINE if offline else REMEDY):
            if path and (Path(path) / "state.json").exists():
                return datasets.load_from_disk(path)
            place = path or data["dataset"]
            return datasets.load_dataset(place, split=data["split"], revision=data["revision"], **chosen)
    finally:
        datasets.config.HF_HUB_OFFLINE = was_offline


def hub_reachable() -> bool:
    """Return whether the hub's host answers within a few seconds; behind a proxy it is taken to."""
    from urllib.parse import urlparse
    from urllib.request import getproxies

    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    url = urlparse(constants.ENDPOINT)
    if getproxies().get(url.scheme):
        return True
    try:
        with socket.create_connection((url.hostname or "", url.port or 443), REACH_SECONDS):
            return True
    except OSError:
        return False
