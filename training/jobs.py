"""One Hydra job after another: a job that the user must mend does not stop the others of a sweep."""

import sys
from importlib import import_module

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from cli.errors import UserError, leave_if_unread, refused_where_undetermined


class Jobs:
    """Runs the objective of each job; keeps the errors of a sweep for the end."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def run(self, cfg: DictConfig) -> None:
        """Call the function that `objective.run` names, with the job's whole configuration."""
        module, _, function = cfg.objective.run.rpartition(".")
        try:
            with refused_where_undetermined():
                getattr(import_module(module), function)(cfg)
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
