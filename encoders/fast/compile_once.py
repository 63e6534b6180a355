"""The compiled kernels, where numba is installed: loaded when a decoder first needs them, not with this file."""

import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LOCK = Path(tempfile.gettempdir()) / f"pooling-ablation-kernels-{os.getuid()}.lock"


@cache
def kernels() -> Any:
    """The compiled kernels; None without numba. One process at a time compiles, and the others read what it wrote.

    numba keeps them next to the source or, where that cannot be written, in the user's cache; NUMBA_CACHE_DIR goes
    first. Where none of these can be written, each process compiles for itself.
    """
    if find_spec("numba") is None:
        return None
    from filelock import FileLock
    from numba.core import config

    with FileLock(LOCK):
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
