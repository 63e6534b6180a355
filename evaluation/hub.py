"""A data set that the hub does not give becomes one line with the mend."""

from typing import Any

from records.errors import UserError

CLIENTS = {"huggingface_hub", "httpx", "httpcore", "requests", "urllib3", "aiohttp"}


def is_hub_error(error: BaseException) -> bool:
    """Tell whether `error` means: the hub cannot be reached, or does not have the data set (or asks for a login)."""
    from datasets.exceptions import DatasetNotFoundError

    if isinstance(error, (ConnectionError, TimeoutError, DatasetNotFoundError)):
        return True
    return any(kind.__module__.split(".")[0] in CLIENTS for kind in type(error).__mro__)


def unreachable(task: Any, error: BaseException) -> UserError:
    """Return the error for a task whose data set cannot be had."""
    parts = getattr(task.metadata, "tasks", None) or [task]  # an aggregate, as CQADupstack, has no data of its own
    return UserError(
        f"The data set {parts[0].metadata.dataset['path']} of task {task.metadata.name} cannot be fetched from the hub "
        f"({type(error).__name__}). Connect to the network, or fill HF_HOME on a machine that has it; "
        "benchmark=docs and tasks_dir=<folder> need no network."
    )
