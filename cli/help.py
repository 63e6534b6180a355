"""`--help` of a command: its file of conf/, whose remarks are the manual."""

import re

from cli.compose import CONF, groups, options


def help_screen(name: str) -> str:
    """Return conf/<name>.yaml and the file that it shares with other programs, then the options of their groups."""
    text = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
    if "\n  - encoder" in text:
        text += (CONF / "encoder.yaml").read_text(encoding="utf-8")
    of_group = [group for group in re.findall(r"^  - (\w+): ", text, re.M) if group in groups()]
    lines = [f"# {group}= {', '.join(options(group))}" for group in of_group]
    return "\n".join([f"# keys of {name}: key=value replaces a default, group=option chooses a file", text, *lines])
