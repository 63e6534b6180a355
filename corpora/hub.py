"""`data=ir_data`: triples of a hub data set, or of a local copy of it, by the datasets library."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.errors import UserError, of_the_network
from corpora.files import records
from corpora.triples import BadRecordError, Triple, TripleMaker

BATCH = 1000  # rows that are turned into Python objects at a time
REACH_SECONDS = 5.0


def triples(data: dict[str, Any], cache_dir: str) -> list[Triple]:
    """Return the triples of `data.dataset` at `data.revision`, or of the local folder or file `data.path`.
    Raises `UserError` where the hub cannot be reached and nothing is cached, for an unknown data set, split or
    revision, and with the row for a record that cannot be used."""
    path = data["path"]
    if path and not Path(path).is_dir():
        return list(records(data, TripleMaker))
    rows = load_split(data)
    make = TripleMaker(data["columns"], data["name"])
    examples: list[Triple] = []
    try:
        make.check_keys(rows.column_names)
        for batch in columns_of(rows, [c for c in rows.column_names if c in make.names()]):
            for values in zip(*batch.values(), strict=True):
                examples.append(make(dict(zip(batch, values, strict=True))))
    except BadRecordError as error:
        raise UserError(f"{path or data['dataset']}, row {len(examples) + 1} {error}") from error
    return examples


def columns_of(split: Any, names: list[str]) -> Iterator[dict[str, list]]:
    """Yield column -> values, for `BATCH` rows at a time."""
    yield from split.select_columns(names).iter(batch_size=BATCH)


def load_split(data: dict[str, Any]) -> Any:
    """Return the split as a `datasets.Dataset`, its rows on disk.
    data: dataset, split, revision and path; subset and files of the data set, where it has such."""
    import datasets
    from huggingface_hub.errors import HfHubHTTPError

    path = data["path"]
    offline = not path and not hub_reachable()
    faults = (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError, HfHubHTTPError)
    datasets.disable_progress_bars()
    was_offline = datasets.config.HF_HUB_OFFLINE
    try:
        datasets.config.HF_HUB_OFFLINE = was_offline or offline  # what is cached still loads, without long retries
        if path and (Path(path) / "state.json").exists():
            return datasets.load_from_disk(path)
        chosen = {} if path else {"name": data.get("subset"), "data_files": data.get("files")}
        place = path or data["dataset"]
        split = datasets.load_dataset(place, split=data["split"], revision=data["revision"], **chosen)
        _tell_commit(data, commit_of(split))
        return split
    except Exception as error:
        if not isinstance(error, faults) and not of_the_network(error):
            raise
        raise UserError(_explained(error, data, offline)) from error
    finally:
        datasets.config.HF_HUB_OFFLINE = was_offline


def commit_of(split: Any) -> str:
    """Return the commit of the hub data set that `split` was read from, or "" for data from elsewhere."""
    matches = (re.match(r"hf://datasets/[^@]+@([0-9a-f]{40})/", url) for url in split.info.download_checksums or ())
    return next((match.group(1) for match in matches if match), "")


def _tell_commit(data: dict[str, Any], commit: str) -> None:
    """Name the commit where the configuration does not, so that the run can be repeated when the hub has moved on."""
    if commit and data["revision"] != commit:
        print(f"{data['dataset']} is read at commit {commit}; data.revision={commit} reads the same again.", flush=True)


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
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        with socket.create_connection((url.hostname or "", port), REACH_SECONDS):
            return True
    except OSError:
        return False


def _explained(error: Exception, data: dict[str, Any], offline: bool) -> str:
    if offline:
        return (
            f"The hub data set '{data['dataset']}' is not in the local cache and the hub cannot be reached. "
            "Connect once, or download it and give data.path=<folder>."
        )
    first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    name = data["path"] or f"{data['dataset']}, revision {data['revision']}"
    remedy = "Check data.path and data.split" if data["path"] else "Check data.dataset, data.split and data.revision"
    return f"The data set {name}, split {data['split']}, cannot be loaded: {first.rstrip('.')}. {remedy}."
