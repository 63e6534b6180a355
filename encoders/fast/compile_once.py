"""The compiled kernels, where numba is installed: loaded when a decoder first needs them, not with this file."""

import os
import tempfile
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def _lock() -> Any:
    """A lock in the user's own cache: in a temporary folder that all share, its name could be another's link."""
    from filelock import FileLock

    try:
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pooling-ablation"
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return nullcontext()
    return FileLock(place / "kernels.lock") if os.access(place, os.W_OK) else nullcontext()


@cache
def kernels() -> Any:
    """The compiled kernels; None without numba. One process at a time compiles, and the others read what it wrote.

    numba keeps them next to the source or, where that cannot be written, in the user's cache; NUMBA_CACHE_DIR goes
    first. Where none of these can be written, each process compiles for itself.
    """
    if find_spec("numba") is None:
        return None
    from numba.core import config

    with _lock():
        try:
            from encoders.fast import jit_kernels

            return jit_kernels
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
        with tempfile.TemporaryDirectory() as folder:
            setattr(config, "CACHE_DIR", folder)  # noqa: B010  (numba's types know no settings)
            from encoders.fast import jit_kernels

            return jit_kernels
