"""sha256 of the code that makes vectors: what is kept on disk must not outlive a change to it."""

import sys
from collections.abc import Iterable
from pathlib import Path

from poolers.base import Pooler
from poolers.registry import pooler_names
from records.fingerprint import of_file, of_value

ROOT = Path(__file__).resolve().parent.parent


def encoder_sources() -> str:
    """Return the digest over encoders/ and all below it: the code that makes hidden states."""
    return _digest((ROOT / "encoders").rglob("*.py"))


def sources(pooler: Pooler) -> str:
    """Return the digest over encoders/, what all poolers share, and this pooler's own modules; others do not count."""
    own = {module for part in pooler.modules() for cls in type(part).__mro__ if (module := cls.__module__)}
    files = {Path(str(sys.modules[name].__file__)) for name in own if name.startswith("poolers.")}
    others = {ROOT / "poolers" / f"{name}.py" for name in pooler_names()}
    shared = {path for path in (ROOT / "poolers").rglob("*.py") if path not in others}
    return of_value([encoder_sources(), _digest(files | shared)])


def _digest(files: Iterable[Path]) -> str:
    """Digest over the places of files in the repository and their contents."""
    return of_value({path.relative_to(ROOT).as_posix(): of_file(path) for path in files})
