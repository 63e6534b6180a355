"""Task and prompt type -> instruction sentence, from conf/instructions.yaml, from mteb, or none at all.

The sentence alone: `Instruct: {sentence}\\nQuery: {text}` is the encoder's template.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from cli.compose import CONF
from cli.errors import reading
from encoders.templates import SIDES
from records.files import of_value

MODES = ("none", "table", "mteb")
Sides = dict[str, str]  # {"query": ..., "document": ...}
Table = dict[str, Any]  # conf/instructions.yaml: {"tasks": {name: Sides}, "types": {type: Sides}, "default": Sides}


@dataclass(frozen=True)
class Instructions:
    """`mode` none: no instruction anywhere. table: the task's entry, else its type's, else the default one.

    mteb: the prompt that the task carries, else mteb's sentence for its type; documents: only where the task has one.
    """

    mode: str = "none"
    table: Table | None = None

    def of(self, metadata: Any, side: str) -> str:
        """Return the instruction for `side` ("query", also for symmetric tasks, or "document") of a task."""
        if self.mode == "none":
            return ""
        if self.table is None:
            return _from_mteb(metadata, side)
        by_task, by_type = self.table["tasks"].get(metadata.name), self.table["types"].get(metadata.type)
        return (by_task or by_type or self.table["default"])[side]

    @property
    def label(self) -> str:
        """The mark of scores with these instructions: "", "mteb", or "table" and a digest."""
        if self.table is None:
            return "" if self.mode == "none" else self.mode
        return "table" + of_value(self.table)[:6]

    def used(self, metadata: Any) -> Sides:
        """Return {query, document} of a task, for the record beside its score; empty without instructions."""
        return {} if self.mode == "none" else {side: self.of(metadata, side) for side in SIDES}


def read_instructions(mode: str, path: Path = CONF / "instructions.yaml") -> Instructions:
    """Return the instructions for `mode`, one of `MODES`. Raises `UserError` for a malformed table."""
    if mode != "table":
        return Instructions(mode)
    with reading(path, "It has the keys default, types and tasks; an entry is a sentence, or has query and document."):
        raw: Any = OmegaConf.to_container(OmegaConf.load(path))
        tasks, types = ({name: _sides(entry) for name, entry in raw[part].items()} for part in ("tasks", "types"))
        return Instructions(mode, {"tasks": tasks, "types": types, "default": _sides(raw["default"])})


def _sides(entry: str | Sides) -> Sides:
    """A bare sentence is the query's; documents then get none."""
    if isinstance(entry, str):
        return {"query": entry, "document": ""}
    if not set(entry) <= set(SIDES):
        raise ValueError(f"an entry has the keys {', '.join(entry)}")
    return {side: str(entry.get(side) or "") for side in SIDES}


def _from_mteb(metadata: Any, side: str) -> str:
    prompt = metadata.prompt
    if isinstance(prompt, dict):
        return str(prompt.get(side) or "")
    if side == "document":
        return ""
    if prompt:
        return str(prompt)
    from mteb.abstasks.abstask import get_abstask_prompt

    try:
        return str(get_abstask_prompt(metadata.name))
    except KeyError:  # a task of ours, which mteb's registry does not know
        return ""
