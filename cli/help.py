"""`--help` of a command, read from conf/: its purpose, examples, groups and keys with their remarks. Without Hydra."""

import re
from pathlib import Path
from textwrap import fill

_BESIDE = Path(__file__).resolve().parent.parent
# The folder of conf/, assets/ and train.py: the checkout, or what an installation has beside the packages.
HOME = _BESIDE / "pooling_ablation" if (_BESIDE / "pooling_ablation").is_dir() else _BESIDE
CONF = HOME / "conf"
WIDTH = 118


def help_screen(name: str) -> str:
    """Return the screen of the command whose configuration is conf/<name>.yaml.

    The comment at the top of that file is purpose and examples; a line of its `defaults` is a group, a key's line has
    the remark that stands with it.
    """
    text = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
    head = re.match(r"(#.*\n)*", text)
    purpose, *examples = head[0].replace("# ", "").splitlines() if head else [""]
    groups = [(group, what) for group, what in _groups(text) if (CONF / group).is_dir()]
    remarks = [(key, default, remark) for key, default, remark in key_remarks(name) if remark]
    keys = [_line(key, f"({default}) {remark}" if default else remark) for key, default, remark in remarks]
    shared = ", ".join(key for key, _, remark in key_remarks("encoder") if remark and "." not in key)
    more = [fill(f"Further keys, in conf/encoder.yaml: {shared}.", WIDTH)] if "  - encoder" in text else []
    parts = [purpose, "", "examples:", *(f"  {example}" for example in examples)]
    if groups:
        parts += [
            "",
            "groups, each chosen whole (group=option):",
            *(_line(f"{g}=", _listed(g, what)) for g, what in groups),
        ]
    return "\n".join([*parts, "", f"keys of conf/{name}.yaml:", *keys, "", *more])


def key_remarks(name: str) -> list[tuple[str, str, str]]:
    """Return (key, default, remark) of every key of conf/<name>.yaml, in the file's order; "" where there is none."""
    text = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
    remarks, above = [], ""
    for line in re.sub(r"\n {6,}#", "", text).splitlines():  # a remark of several lines as one
        match = re.match(r"( *)(\w+):\s*(.*?)\s*(?:#\s*(.*))?$", line)
        if match:
            indent, key, default, remark = match.groups()
            above = above if indent else key
            remarks.append((f"{above}.{key}" if indent else key, default, remark or ""))
    return remarks


def _groups(text: str) -> list[tuple[str, str]]:
    """The groups of a program and what they set: its own, those of conf/encoder.yaml before them."""
    shared = (CONF / "encoder.yaml").read_text(encoding="utf-8") if "  - encoder" in text else ""
    return re.findall(r"^  - (\w+): \S+ # (.*)$", shared + text, re.M)


def _listed(group: str, what: str) -> str:
    """What a group sets, and its options, as many as two lines hold."""
    names = ", ".join(
        sorted(file.relative_to(CONF / group).with_suffix("").as_posix() for file in (CONF / group).rglob("*.yaml"))
    )
    return f"{what}: {names if len(names) < 2 * WIDTH else names[: names.rindex(', ', 0, 2 * WIDTH)] + ', ...'}"


def _line(name: str, text: str) -> str:
    return fill(text, WIDTH, initial_indent=f"  {name:<14} ", subsequent_indent=" " * 17, break_long_words=False)
