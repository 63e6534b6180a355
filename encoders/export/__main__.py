"""`python -m encoders.export run=<run folder> to=<folder>`: a run as a model folder of sentence-transformers."""

import sys
from collections.abc import Sequence
from pathlib import Path

from cli.errors import UserError, guard, nearest, of_the_network

USAGE = """\
A finished run as a model folder that sentence-transformers loads without this program.

usage: python -m encoders.export run=<run folder> to=<folder> [key=value ...]

  run       the folder of a finished run
  to        the folder to write, which must not hold anything yet; it appears whole or not at all
  adapter   (merged) merged: LoRA is added to the weights of the base, in float32. beside: the folder holds the adapter
            and the name of its base
  onnx      (false) true: the folder holds onnx/model.onnx too, which runs without torch (pip install ".[onnx]"); for
            designs whose pooling sentence-transformers has
  push      name on the hub, such as lab/mean-bi, under which the folder is put too, private; it takes a token
            (hf auth login)
  scores    results folder of evaluate.py whose scores of this run go into the model card; or one revision in it

The vectors of the folder are compared with the run's before it appears.

examples:
  python -m encoders.export run=runs/embedded/mean-bi/seed0 to=exported/mean-bi
  python -m encoders.export run=runs/embedded/multilayer-bi/seed0 to=exported/model5 scores=runs/embedded/scores
"""
LEAST_COSINE = 0.99999
CHOICES = {"adapter": ("merged", "beside"), "onnx": ("false", "true")}  # the first is the default
KEYS = ("run", "to", "adapter", "onnx", "push", "scores")


def main(arguments: Sequence[str]) -> None:
    """Write the folder. Raises `UserError` for wrong words, for what cannot be exported, and for other vectors."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE)
        return
    words = _words(arguments)
    run, to = Path(words["run"]), Path(words["to"])
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UserError(f"to={to} is there and not empty. Name another folder, or remove it.")
    try:
        import sentence_transformers  # noqa: F401
    except ImportError as error:
        raise UserError(
            "Exporting takes sentence-transformers. Install it: pip install sentence-transformers."
        ) from error
    from cli.quiet import quiet
    from encoders.export.card import write_card
    from encoders.export.exported import load_exported
    from encoders.export.folder import least_cosine, write_folder
    from encoders.export.graph import check_graph, write_graph
    from records.atomic import replacing

    with quiet(), replacing(to) as draft:
        exported = load_exported(run, words["adapter"] == "merged")
        if words["onnx"] == "true":
            check_graph(exported)
        write_folder(exported, draft)
        write_card(exported, draft, to.name, Path(words["scores"]) if "scores" in words else None)
        cosines = {"sentence-transformers": least_cosine(exported, draft)}
        if words["onnx"] == "true":
            cosines["onnxruntime"] = write_graph(exported, draft)
        for program, cosine in cosines.items():
            if not cosine >= LEAST_COSINE:
                raise UserError(f"{run} cannot be exported: the vectors of {program} are others (cosine {cosine:.6f}).")
    code = "" if exported.mode else ", trust_remote_code=True"
    least = f"least cosine with the run's own vectors {min(cosines.values()):.7f}"
    print(f"{to}: SentenceTransformer({str(to)!r}{code}); {least}.")
    if "push" in words:
        print(f"{_pushed(to, words['push'])}: the folder as it is, private until you change that.")


def _pushed(folder: Path, name: str) -> str:
    """Put the folder on the hub; return its address. Raises `UserError` without a token, a name or the hub."""
    from huggingface_hub import HfApi

    try:
        url = HfApi(token=True).create_repo(name, private=True, exist_ok=True)
        HfApi(token=True).upload_folder(repo_id=url.repo_id, folder_path=folder)
    except Exception as error:
        if not (of_the_network(error) or isinstance(error, OSError)):
            raise
        why = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
        mend = f"Mend that, then hf upload {name} {folder}."
        raise UserError(f"{folder} is written, but not on the hub: {why}. {mend}") from error
    return str(url)


def _words(arguments: Sequence[str]) -> dict[str, str]:
    words = {key: choices[0] for key, choices in CHOICES.items()}
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key not in KEYS or not value:
            mend = nearest(key, [f"{known}=" for known in KEYS])
            raise UserError(f"'{argument}' is no word of python -m encoders.export. {mend}")
        words[key] = value
    for key in ("run", "to"):
        if key not in words:
            raise UserError(f"{key}=<folder> is missing. See python -m encoders.export --help.")
    for key, choices in CHOICES.items():
        if words[key] not in choices:
            raise UserError(f"{key}={words[key]} must be {' or '.join(choices)}.")
    return words


if __name__ == "__main__":
    guard(lambda: main(sys.argv[1:]))
