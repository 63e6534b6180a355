"""A file made block by block: its facts beside it, its finished blocks in a folder until all is done."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cli.errors import UserError
from records.atomic import write_json, write_text

Config = dict[str, Any]


class Blocks:
    """The work that makes the file `out`. Each block is a file of `parts`, whole or absent: a kill costs one block.

    work: its name in messages. identity: a JSON value, all that decides the file; it begins the facts in <out>.json.
    """

    def __init__(self, out: str, work: str, identity: Config) -> None:
        self.out, self.work = Path(out), work
        self.facts_file, self.parts = (self.out.with_name(self.out.name + end) for end in (".json", ".parts"))
        self.identity: Config = json.loads(json.dumps(identity))

    def finished(self) -> Config | None:
        """Return the facts of `out`; None where it is not there. Raises `UserError` where it is of other work."""
        if not self.out.exists():
            return None
        facts: Config = json.loads(self.facts_file.read_text(encoding="utf-8")) if self.facts_file.exists() else {}
        if {key: facts.get(key) for key in self.identity} != self.identity:
            raise UserError(f"{self.out} is there, of another {self.work} or none. Delete it, or choose another out=.")
        shutil.rmtree(self.parts, ignore_errors=True)
        print(f"{self.out} is finished; nothing to do.")
        return facts

    def begin(self) -> None:
        """Make `parts`. Raises `UserError` where it is there and holds blocks of other work."""
        mine = self.parts / "identity.json"
        if mine.exists() and json.loads(mine.read_text(encoding="utf-8")) != self.identity:
            raise UserError(f"{self.parts} holds blocks of another {self.work}. Delete it, or choose another out=.")
        write_json(mine, self.identity)

    def close(self, facts: Config, lines: Iterable[str]) -> Config:
        """Write `out` and its facts, identity first, remove the blocks, and return the facts."""
        facts = {**self.identity, **facts}
        write_json(self.facts_file, facts)  # before the file, whose being there says that all is done
        write_text(self.out, lines)
        shutil.rmtree(self.parts, ignore_errors=True)
        return facts


def check_out(out: Any) -> None:
    """Refuse a file that is not named as JSON lines. Raises `UserError`."""
    if not str(out).endswith(".jsonl"):
        raise UserError(f"out={out or ''} must be a file that ends with .jsonl.")
