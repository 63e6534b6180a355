"""The digest that shows whether a manifest was changed after it was written."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from records.errors import UserError
from records.fingerprint import of_value

SEAL = "manifest_sha256"


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return `manifest` as it comes back from a file, with `manifest_sha256` over all its other keys.

    The digest shows a slip of the hand; it is no signature, since whoever edits the file can compute it anew.
    """
    plain = json.loads(json.dumps({key: value for key, value in manifest.items() if key != SEAL}, default=str))
    return {**plain, SEAL: of_value(plain)}


def check_seal(manifest: Mapping[str, Any], path: Path) -> None:
    """Raise `UserError`, naming the file, where the digest is absent or does not fit what the manifest says."""
    held = manifest.get(SEAL)
    if held is None:
        raise UserError(f"{path} has no {SEAL}, so it was edited by hand. Restore the file, or make the run again.")
    if held != sealed(manifest)[SEAL]:
        raise UserError(
            f"{path} was edited by hand: its {SEAL} does not fit what it says. Restore the file, or make the run again."
        )
