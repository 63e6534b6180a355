"""The command line: Hydra's override words over conf/analysis.yaml, without Hydra's own folders and logs."""

from pathlib import Path

from analysis.settings import LIST_KEYS, Settings, settings_from
from cli.compose import composed, help_screen, plain, quoted, readable
from cli.errors import UserError

OF_A_GROUP = "benchmark="  # Hydra would look for the option in conf/benchmark, which is evaluation's

USAGE = """\
Tables and tests from embedding scores: which designs differ, by how much, and whether that is more than chance.

usage: python -m analysis scores=<results folder or csv> [key=value ...]

examples:
  python -m analysis scores=runs/scores report=true                        tables, figures, and a page: report.html
  python -m analysis scores=runs/scores against=eos-causal                 each design against one, not every two
  python -m analysis scores=runs factors=[pooler,attn,lora.r]              main effects and interactions of the factors
  python -m analysis scores=mteb.csv.gz models=[BAAI__bge-*] types=[STS]   published models, some task types
  python -m analysis scores=[mine/results,theirs.csv] alpha=0.01           several sources as one table
"""

MORE = """\
scores: an mteb results folder (results/<model>/<revision>/<task>.json, also experiments/<name>/), or a csv:
  long: columns model, task, score and optionally type, seed, split, subsets, and the factors (pooler, attn);
  wide: first column model, one column per task.
It prints the main tables as Markdown and writes table.md, table.tex (booktabs, graphicx), csv files with every
digit, and result.json (what was compared, how, and with which finding). tables=[items,overlap] adds to them;
layout=wilcoxon prints the published kind of table alone.

Designs whose manifests differ in more than the factors are refused, with the keys; python -m analysis.control <runs>
prints that audit alone.

Put quotes around a list that holds a name with a space or a bracket: "models=['eos-causal (untrained)',mean-bi]".
docs/analysing.md lists every table.
"""
EXIT_CODE = "exit code: 0 done, 2 something in the input that you can mend (one line says what)."


def help_page() -> str:
    """Return the manual; the meaning of every key is its remark in conf/analysis.yaml."""
    return "\n".join([USAGE, help_screen("analysis"), MORE + EXIT_CODE])


def read_arguments(arguments: list[str]) -> Settings:
    """Compose the settings from `key=value` words.

    Raises UserError for a word that is no override, an unknown key (with the nearest names), or a bad value.
    """
    names = [word.partition("=")[2].strip("'\"") for word in arguments if word.startswith(OF_A_GROUP)]
    words = [_checked(word) for word in arguments if not word.startswith(OF_A_GROUP)]
    values = plain(composed("analysis", readable(words)))
    for name in names:
        values["benchmark"] = name if name != "null" else None
    return settings_from(values)


def _checked(word: str) -> str:
    """Return one override, a path or name with a comma in quotes. Raises UserError for what is none."""
    key, equals, value = word.partition("=")
    if not equals or word.startswith("-"):
        raise UserError(f"{word!r} is no key=value, or 'key=a b' where it has spaces. See --help.")
    if "," in value and value[0] not in "[{'\"":
        if key in LIST_KEYS and not Path(value).exists():
            raise UserError(f"{word!r} looks like a sweep. Write a list: {key}=[{value}].")
        return f"{key}={quoted(value)}"
    return word
