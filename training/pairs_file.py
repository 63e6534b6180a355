"""A command that makes a file of pairs: its start, and the file, JSON lines with the facts of its making beside it."""

import json
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from cli.compose import composed, plain
from cli.errors import UserError
from cli.help import help_screen
from cli.words import readable
from records.files import write_json, write_text

Config = dict[str, Any]


def main(name: str) -> None:
    """Run `python -m training.<name>`: read the command line, then load what the work needs. Raises `UserError`."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(help_screen(name))
        return
    cfg = plain(composed(name, readable(arguments)))
    from cli.quiet import quieten

    command = import_module(f"training.{name}.command")
    quieten()
    command.run(cfg)


def check_out(out: Any) -> None:
    """Refuse a file that is there, or that is not named as JSON lines. Raises `UserError`."""
    if not str(out).endswith(".jsonl"):
        raise UserError(f"out={out or ''} must be a file that ends with .jsonl.")
    if Path(out).exists():
        raise UserError(f"out={out} is there. Delete it, or choose another out=.")


def write_pairs(out: str, rows: Iterable[Config], facts: Config | None = None) -> None:
    """Write <out>.json, where there are facts, then <out>, whose being there says that all is done."""
    if facts is not None:
        write_json(Path(f"{out}.json"), facts)
    write_text(Path(out), (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
