"""The keys of a file of conf/ with their remarks, as `--help` shows them. Without Hydra, which takes long to import."""

import re
from pathlib import Path

_BESIDE = Path(__file__).resolve().parent.parent
# The folder of conf/, assets/ and train.py: the checkout, or what an installation has beside the packages.
HOME = _BESIDE / "pooling_ablation" if (_BESIDE / "pooling_ablation").is_dir() else _BESIDE
CONF = HOME / "conf"


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
