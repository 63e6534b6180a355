"""Records of measured heats: one JSON file, one entry a (card, model, part), the newest."""

import json
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.gpu_card.model import Card
from records.atomic import write_json
from records.manifest import code, environment

FILE = "gpu.json"
MEASURED = Path(__file__).resolve().parents[1] / "measured"
ONE = ("device", "model", "part", "poolers", "small")  # what tells records apart: a newer one replaces an older one


def taken(card: Card) -> dict[str, Any]:
    """On what, when, and by which code."""
    return {"date": str(date.today()), "device": card.name, "code": code(), "versions": environment()["versions"]}


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All records below `folder`; none where nothing was measured."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def keep_record(folder: Path, record: dict[str, Any]) -> None:
    """Add `record`, in place of an older one of the same card, model, part and poolers."""
    record = json.loads(json.dumps(record))  # as it will be read: tuples are lists
    others = [r for r in read_records(folder) if any(r[key] != record[key] for key in ONE)]
    write_json(folder / FILE, [*others, record])
