"""sha256 of the code that makes vectors: what is kept on disk must not outlive a change to it."""

import sys
from pathlib import Path

from poolers.base import Pooler
from poolers.registry import NOT_POOLERS
from records.fingerprint import of_files, of_value

ROOT = Path(__file__).resolve().parent.parent


def sources(pooler: Pooler) -> str:
    """Return the digest over encoders/, what all poolers share, and this pooler's own modules; others do not count."""
    own = {module for part in pooler.modules() for cls in type(part).__mro__ if (module := cls.__module__)}
    files = [Path(str(sys.modules[name].__file__)) for name in own if name.startswith("poolers.")]
    shared = [ROOT / "poolers" / f"{name}.py" for name in NOT_POOLERS]
    return of_value([of_files((ROOT / "encoders").glob("*.py")), of_files({*files, *shared})])
