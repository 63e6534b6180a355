"""`python -m encoders.export run=<run folder> to=<folder>`: a run as a model folder of sentence-transformers."""

import sys
from collections.abc import Sequence
from pathlib import Path

from cli.errors import UserError, guard, nearest, quieten

USAGE = """\
A finished run as a model folder that sentence-transformers loads without this program.

usage: python -m encoders.export run=<run folder> to=<folder> [adapter=beside]

  run       the folder of a finished run
  to        the folder to write, which must not hold anything yet; it appears whole or not at all
  adapter   (merged) merged: LoRA is added to the weights of the base, in float32. beside: the folder holds the adapter
            and the name of its base

The vectors of the folder are compared with the run's before it appears. `hf upload <name> <folder>` puts it on the hub.
"""
LEAST_COSINE = 0.99999
ADAPTERS = ("merged", "beside")
KEYS = ("run", "to", "adapter")


def main(arguments: Sequence[str]) -> None:
    """Write the folder. Raises `UserError` for wrong words, for what cannot be exported, and for other vectors."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE)
        return
    words = _words(arguments)
    run, to = Path(words["run"]), Path(words["to"])
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UserError(f"to={to} is there and not empty. Name another folder, or remove it.")
    from encoders.export.exported import load_exported
    from encoders.export.folder import least_cosine, write_folder
    from records.files import replacing

    quieten()
    with replacing(to) as draft:
        exported = load_exported(run, words["adapter"] == "merged")
        write_folder(exported, draft)
        cosine = least_cosine(exported, draft)
        if not cosine >= LEAST_COSINE:
            raise UserError(
                f"{run} cannot be exported: sentence-transformers' vectors are others (cosine {cosine:.6f})."
            )
    code = "" if exported.mode else ", trust_remote_code=True"
    print(f"{to}: SentenceTransformer({str(to)!r}{code}); least cosine with the run's own vectors {cosine:.7f}.")


def _words(arguments: Sequence[str]) -> dict[str, str]:
    words = {"adapter": ADAPTERS[0], **{key: value for key, _, value in (word.partition("=") for word in arguments)}}
    for key in words.keys() - set(KEYS):
        mend = nearest(key, [f"{known}=" for known in KEYS])
        raise UserError(f"'{key}' is no word of python -m encoders.export. {mend}")
    for key in KEYS:
        if not words.get(key):
            raise UserError(f"{key}=<folder> is missing. See python -m encoders.export --help.")
    if words["adapter"] not in ADAPTERS:
        raise UserError(f"adapter={words['adapter']} must be {' or '.join(ADAPTERS)}.")
    return words


if __name__ == "__main__":
    guard(lambda: main(sys.argv[1:]))
