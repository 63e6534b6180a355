"""Command-line words made ready for Hydra: file names that its grammar would take for something else."""

from collections.abc import Sequence

FILE_KEYS = ("data.path",)
LEFT_ALONE = ("[", "'", '"', "choice(")  # a list, quoted already, a sweep over data sets


def quoted_files(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the value of `data.path=` in quotes.

    `data.path=a.jsonl.gz,b.jsonl` means two files of one data set; unquoted, Hydra reads a sweep over two data sets
    (write `data.path=choice(a.jsonl,b.jsonl)` with -m for that), and stumbles over spaces and brackets in names.
    """
    return [_quoted(a) for a in arguments]


def _quoted(argument: str) -> str:
    key, equals, value = argument.partition("=")
    if key not in FILE_KEYS or not equals or value in ("", "null") or value.startswith(LEFT_ALONE):
        return argument
    escaped = value.replace("\\'", "'").replace("'", "\\'")
    return f"{key}='{escaped}'"
