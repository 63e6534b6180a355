"""The jobs of a command under Hydra: one, or those of a sweep."""

import sys
from collections.abc import Callable
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from cli.compose import plain
from cli.errors import UserError, explained, leave_if_unread


class Jobs:
    """Runs one Hydra job after another; one that the user must correct does not stop the others of a sweep.

    run: called with the resolved configuration of each job.
    """

    def __init__(self, run: Callable[[dict[str, Any]], None]) -> None:
        self._run = run
        self.failures: list[str] = []

    def run(self, cfg: DictConfig) -> None:
        """Run a job; in a sweep its error is kept for the end."""
        try:
            with explained():
                self._run(plain(cfg))
        except BrokenPipeError:
            leave_if_unread()  # Hydra would print a trace
            raise
        except UserError as error:
            if HydraConfig.get().mode is not RunMode.MULTIRUN:
                raise SystemExit(self._report(error)) from error
            self._report(error)
            self.failures.append(str(error))

    def close(self) -> None:
        """Leave with exit code 2 where a job of a sweep failed."""
        if self.failures:
            raise UserError(f"{len(self.failures)} of the sweep's runs failed; the errors stand above.")

    @staticmethod
    def _report(error: UserError) -> int:
        print("error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
        return 2
