"""`data=ir_data`: triples of a hub data set, or of a local copy of it, by the datasets library."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.errors import reading
from corpora.files import made
from corpora.triples import Triple, TripleMaker

REACH_SECONDS = 5.0
REMEDY = "Check data.path (a folder), or data.dataset and data.revision; data.subset, data.files and data.split."
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
    offline = not path and without_hub()
    datasets.disable_progress_bars()
    chosen = {"name": data.get("subset"), "data_files": data.get("files")}
    with reading(f"{path or data['dataset']}, split {data['split']}", OFFLINE if offline else REMEDY):
        if path and (Path(path) / "state.json").exists():
            return datasets.load_from_disk(path)
        place = path or data["dataset"]
        return datasets.load_dataset(place, split=data["split"], revision=data["revision"], **chosen)


def without_hub() -> bool:
    """Return whether the hub's host gives no answer within a few seconds; behind a proxy it is taken to.

    Then all of this process reads what is cached at once, without retries.
    """
    from urllib.parse import urlparse
    from urllib.request import getproxies

    import datasets
    from huggingface_hub import constants

    url = urlparse(constants.ENDPOINT)
    if not datasets.config.HF_HUB_OFFLINE and not getproxies().get(url.scheme):
        try:
            socket.create_connection((url.hostname or "", url.port or 443), REACH_SECONDS).close()
        except OSError:
            datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    return bool(datasets.config.HF_HUB_OFFLINE)
