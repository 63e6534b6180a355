"""A GGUF file as a model folder that model.path= takes: weights in float32, configuration, tokenizer.

    python -m benchmarks.from_gguf <file.gguf> to=<folder>

Quantised weights are expanded as they are stored, so the model is the quantised one. Needs `pip install gguf`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from cli.errors import UserError, guard, quieten, reading


def main(arguments: Sequence[str]) -> None:
    """Write the folder, which appears whole or not at all. Raises `UserError`."""
    files = [word for word in arguments if not word.startswith("to=")]
    folders = [word.removeprefix("to=") for word in arguments if word.startswith("to=")]
    if len(files) != 1 or len(folders) != 1 or not folders[0] or files[0].startswith("-"):
        raise UserError("Give one file and one folder: python -m benchmarks.from_gguf <file.gguf> to=<folder>.")
    convert(Path(files[0]), Path(folders[0]))


def convert(file: Path, to: Path) -> None:
    """Write the model of `file` to the folder `to`. Raises `UserError` for what transformers cannot read."""
    if not file.is_file():
        raise UserError(f"There is no file {file}. Give the path of a GGUF file.")
    if to.exists():
        raise UserError(f"to={to} is there. Name another folder, or remove it.")
    try:
        import gguf  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError("Reading GGUF needs the package gguf: pip install gguf.") from error
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from records.files import replacing

    quieten()
    with reading(file), replacing(to) as draft:
        read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        # transformers refuses to save a model that came from GGUF: the same weights in one that did not
        settings = read.config.to_dict()
        settings.pop("quantization_config", None)
        model = type(read)(AutoConfig.for_model(**settings))
        model.load_state_dict(read.state_dict())
        model.tie_weights()
        model.save_pretrained(draft)
        AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(draft)
    print(f"{to}: {type(model).__name__}, {model.num_parameters():,} parameters. Use it by model.path={to}.")


if __name__ == "__main__":
    guard(lambda: main(sys.argv[1:]))
