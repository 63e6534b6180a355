"""`--help` of a command: its purpose, examples, groups and keys, all read from conf/."""

import re
from collections.abc import Iterator
from textwrap import fill

from cli.compose import CONF, composed, options
from cli.remarks import key_remarks

EXAMPLES = 5
WIDTH = 118
SHOWN_WHOLE = ("train", "evaluate")  # programs that have --cfg job


def help_screen(name: str) -> str:
    """Return the screen of the command whose configuration is conf/<name>.yaml.

    The first line of that file is the purpose, the next ones are examples; a group's line is its row in conf/README.md;
    a key's line is the remark that stands with it.
    """
    purpose, *examples = _head(name)
    shown = [f"  {example}" for example in examples[:EXAMPLES]]
    groups = [_line(f"{group}=", _shortened(what, names)) for group, what, names in _groups(name)]
    remarks = [(key, default, remark) for key, default, remark in key_remarks(name) if remark]
    keys = [_line(key, f"({default}) {remark}" if default else remark) for key, default, remark in remarks]
    parts = [purpose, "", "examples:", *shown]
    more = "Its other words are those of train.py and evaluate.py; their --help lists them."
    if groups:
        parts += ["", "groups, each chosen whole (group=option):", *groups]
        more = "conf/README.md lists all options"
        more += "; --cfg job prints every key with its value." if name in SHOWN_WHOLE else "."
        if "head" in composed(name):
            shared = ", ".join(key for key, _, remark in key_remarks("encoder") if remark and "." not in key)
            more = fill(f"Further keys, in conf/encoder.yaml: {shared}.", WIDTH) + f"\n{more}"
    return "\n".join([*parts, "", f"keys of conf/{name}.yaml:", *keys, "", more])


def _head(name: str) -> list[str]:
    """The comment lines at the top of conf/<name>.yaml."""
    lines = (CONF / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [line.removeprefix("#").strip() for line in lines[:end]]


def _groups(name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (group, its purpose, its options) of each group of the command, purposes from conf/README.md."""
    for line in (CONF / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and name in cells[3].split(", "):
            purpose = re.sub(r" \(\[[^)]*\)\)", "", cells[1]).replace("`", "")
            group = cells[0].strip("`")
            yield group, purpose, list(options(group))


def _shortened(purpose: str, names: list[str]) -> str:
    """Return purpose and options, as many of them as a line holds."""
    for count in range(len(names), 0, -1):
        more = len(names) - count
        text = f"{purpose}: {', '.join(names[:count])}{f' and {more} more' * bool(more)}"
        if len(text) <= WIDTH - 17:
            break
    return text


def _line(name: str, text: str) -> str:
    return fill(text, WIDTH, initial_indent=f"  {name:<14} ", subsequent_indent=" " * 17, break_long_words=False)
