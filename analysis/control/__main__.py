"""`python -m analysis.control runs/...`: the audit of a study's manifests, alone."""

import sys
from pathlib import Path

from cli.errors import UserError, guard, nearest

USAGE = """\
Audit of runs: which factors vary, what else differs, which streams are identical.

usage: python -m analysis.control <folder or glob> ... [factors=[pooler,attn]] [allow=[key,...]]

Folders of any height: a run, a study, all of runs/, the scores of a study. factors: what cells may differ in, seeds
pooled. allow: other keys that may differ all the same; a key covers what lies below it.

examples:
  python -m analysis.control runs/embedded
  python -m analysis.control 'runs/embedded*/*/seed*' factors=[pooler,attn,pooler.tokens]
  python -m analysis.control runs/embedded allow=[threads,versions]

exit code: 0 controlled, 2 not controlled or something that you can mend (one line says what)."""
LISTS = {"factors": ("pooler", "attn"), "allow": ()}


def main() -> None:
    """Print the audit; a study that is not controlled ends with one line and exit code 2."""
    words = sys.argv[1:]
    if {"-h", "--help", "help"} & set(words):
        print(USAGE)
        return
    places, factors, allow = read_words(words)

    from analysis.control.audit import audit, verdict
    from analysis.control.find_runs import find_runs
    from analysis.control.rule import refusal

    text, control, cells = audit(find_runs(places, factors), factors, allow)
    print(text, flush=True)
    if control.refused:
        raise UserError(refusal(control, cells, factors, allow))
    print(verdict(cells, factors, control))


def read_words(words: list[str]) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Return (folders and globs, factors, allow). Raises UserError where there is no folder, or for another key."""
    places, lists = [], dict(LISTS)
    for word in words:
        key, equals, value = word.partition("=")
        if key in LISTS and equals:
            lists[key] = tuple(name.strip() for name in value.strip("[]").split(",") if name.strip())
        elif equals and key.isidentifier() and key != "seed" and not Path(word).exists():
            raise UserError(f"There is no key {key!r}. {nearest(key, LISTS)}")
        else:
            places.append(word)
    if not places:
        raise UserError("Which runs? Write python -m analysis.control <runs folder or glob> ...")
    if not lists["factors"]:
        raise UserError("factors= is an empty list. Leave it out to compare by pooler and attn.")
    return places, lists["factors"], lists["allow"]


if __name__ == "__main__":
    guard(main)
