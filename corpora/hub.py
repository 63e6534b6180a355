"""`data=ir_data`: triples of a hub data set, or of a local copy of it, by the datasets library."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.errors import UserError
from corpora.files import records
from corpora.triples import BadRecordError, Triple, TripleMaker

REACH_SECONDS = 5.0


def triples(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """Return the triples of `data.dataset` at `data.revision`, or of the local folder or file `data.path`.
    Raises `UserError` where the hub cannot be reached and nothing is cached, for an unknown data set, split or
    revision, and with the row for a record that cannot be used."""
    path = data["path"]
    if path and not Path(path).is_dir():
        return list(records(data, TripleMaker))
    split, make = load_split(data), TripleMaker(data["columns"], data["name"])
    examples: list[Triple] = []
    try:
        make.check_keys(split.column_names)
        for row in rows_of(split, [c for c in split.column_names if c in make.columns.values()]):
            examples.append(make(row))
    except BadRecordError as error:
        raise UserError(f"{path or data['dataset']}, row {len(examples) + 1} {error}") from error
    return examples


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
    try:
        datasets.config.HF_HUB_OFFLINE = was_offline or offline  # what is cached still loads, without long retries
        if path and (Path(path) / "state.json").exists():
            return datasets.load_from_disk(path)
        chosen = {} if path else {"name": data.get("subset"), "data_files": data.get("files")}
        place = path or data["dataset"]
        return datasets.load_dataset(place, split=data["split"], revision=data["revision"], **chosen)
    except Exception as error:
        raise UserError(_explained(error, data, offline)) from error
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


def _explained(error: Exception, data: dict[str, Any], offline: bool) -> str:
    if offline:
        return (
            f"The hub data set '{data['dataset']}' is not in the local cache and the hub cannot be reached. "
            "Connect once, or download it and give data.path=<folder>."
        )
    first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300].rstrip(".")
    name = data["path"] or f"{data['dataset']}, revision {data['revision']}"
    remedy = "Check data.path, or data.dataset and data.revision, and data.split."
    return f"The data set {name}, split {data['split']}, cannot be loaded: {first}. {remedy}"
