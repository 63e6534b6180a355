"""Command-line words made ready for Hydra: file names that its grammar would take for something else."""

from collections.abc import Sequence

FILE_KEYS = ("data.path", "runs_dir", "cache_dir")
LISTS = ("lineage",)  # of files; one without brackets is a list of one
LEFT_ALONE = ("[", "'", '"', "choice(")  # a list, quoted already, a sweep over data sets


def quoted_files(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the values of `data.path=`, `runs_dir=`, `cache_dir=` and `lineage=` in quotes.

    `data.path=a.jsonl.gz,b.jsonl` means two files of one data set; unquoted, Hydra reads a sweep over two data sets
    (write `data.path=choice(a.jsonl,b.jsonl)` with -m for that), and stumbles over spaces and brackets in names.
    Several stages are a list in quotes: `lineage=["runs/a/seed=0","runs/b/seed=0"]`.
    """
    return [_quoted(a) for a in arguments]


def _quoted(argument: str) -> str:
    key, equals, value = argument.partition("=")
    if key not in (*FILE_KEYS, *LISTS) or not equals or value in ("", "null") or value.startswith(LEFT_ALONE):
        return argument
    escaped = value.replace("\\'", "'").replace("'", "\\'")
    return f"{key}=['{escaped}']" if key in LISTS else f"{key}='{escaped}'"


def joined_late(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a sweep with each plain `pooler.<key>=<value>` as `choice(<value>)`.

    Hydra first composes the sweep's frame without the words that are swept: for `-m design=model4,model5
    pooler.mlp=false` that is the default pooler, which has no `mlp`. A sweep over one value waits for the job, as the
    design does.
    """
    if not any(a in ("-m", "--multirun") or a.startswith("sweep=") for a in arguments):
        return list(arguments)
    return [_late(a) for a in arguments]


def _late(argument: str) -> str:
    key, equals, value = argument.partition("=")
    of_one_pooler = key.startswith("pooler.") and equals and value
    swept = "," in value or "(" in value
    return f"{key}=choice({value})" if of_one_pooler and not swept else argument
