"""A data set that the hub does not give becomes one line with the mend."""

from typing import Any

from records.errors import UserError


def hub_errors() -> tuple[type[BaseException], ...]:
    """Return the exceptions that mean: the hub cannot be reached, or does not have the data set."""
    import httpx
    from datasets.exceptions import DatasetNotFoundError
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    return (
        ConnectionError,
        TimeoutError,
        httpx.HTTPError,
        DatasetNotFoundError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
    )


def unreachable(task: Any, error: BaseException) -> UserError:
    """Return the error for a task whose data set cannot be had."""
    return UserError(
        f"The data set {task.metadata.dataset['path']} of task {task.metadata.name} cannot be fetched from the hub "
        f"({type(error).__name__}). Connect to the network, or fill HF_HOME on a machine that has it; "
        "benchmark=docs and tasks_dir=<folder> need no network."
    )
