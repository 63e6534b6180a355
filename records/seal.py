"""A manifest carries the sha256 of itself, so that a line edited by hand is noticed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from records.errors import UserError
from records.fingerprint import of_value

SEAL = "manifest_sha256"


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return `manifest` as it comes back from its file, with the sha256 over all other keys."""
    plain = json.loads(json.dumps({k: v for k, v in manifest.items() if k != SEAL}, default=str))
    return {**plain, SEAL: of_value(plain)}


def check_seal(manifest: Mapping[str, Any], path: Path) -> None:
    """Refuse a manifest whose contents are not those that were sealed. Raises `UserError`, naming the file."""
    if sealed(manifest)[SEAL] != manifest.get(SEAL):
        raise UserError(
            f"{path} was edited by hand or damaged: its contents do not give its manifest_sha256. "
            "Put the file back as it was, or delete the run folder (or scores) and run it again."
        )
