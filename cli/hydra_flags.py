"""Hydra's own flags (--cfg job, --info, -m, ...), separated from overrides as Hydra does; those that we have."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any, NoReturn

from hydra._internal.utils import get_args_parser
from omegaconf import Container, DictConfig, OmegaConf

from cli.errors import UserError, nearest

ONE_CONFIGURATION = ("config_path", "config_name", "config_dir", "experimental_rerun")
SHOWN = ("help", "hydra_help", "cfg", "info", "shell_completion")
COMMANDS = ("run", "multirun", "cfg", "info", "shell_completion")


def read_flags(arguments: Sequence[str]) -> Namespace:
    """Return Hydra's flags and, as `overrides`, the words that are none.

    Raises `UserError` for an unknown flag, for flags that do not go together, and for those that would read another
    configuration than conf/: run folders and manifests are made by that one.
    """
    parser = get_args_parser()
    parser.error = _refuse  # type: ignore[method-assign]
    flags = parser.parse_intermixed_args(list(arguments))
    for name in ONE_CONFIGURATION:
        if getattr(flags, name) is not None:
            raise UserError(
                f"--{name.replace('_', '-')} is not supported: a run's configuration is conf/ and key=value."
            )
    commands = [name for name in COMMANDS if getattr(flags, name)]
    if len(commands) > 1:
        raise UserError(f"--{commands[0]} and --{commands[1].replace('_', '-')} do not go together. Leave one out.")
    for name, word in (("package", "--package"), ("resolve", "--resolve")):
        if getattr(flags, name) and not flags.cfg:
            raise UserError(f"{word} says what --cfg shows. Write --cfg job {word}, or leave it out.")
    return flags


def own_flags(program: str, arguments: Sequence[str]) -> Namespace:
    """Return `read_flags` for a program that takes Hydra's words but not its runs: `--cfg job` is all it can show."""
    flags = read_flags(arguments)
    for name in (*SHOWN, *COMMANDS):
        if getattr(flags, name) and (name, flags.cfg) != ("cfg", "job"):
            raise UserError(
                f"{program} has no --{name.replace('_', '-')}{f' {flags.cfg}' if name == 'cfg' else ''}. "
                f"Of Hydra's flags it has --cfg job, with --package and --resolve. See python {program} --help."
            )
    return flags


def flags_first(arguments: Sequence[str], flags: Namespace) -> list[str]:
    """Return the words in the order that Hydra takes them in: it stumbles over an override after a flag."""
    return [*(a for a in arguments if a not in flags.overrides), *flags.overrides]


def job_config(cfg: DictConfig, flags: Namespace) -> str:
    """Return what `--cfg job` prints of a composed configuration, with --package and --resolve, as Hydra does.

    Raises `UserError` where the configuration has no such package.
    """
    part: Any = cfg
    head = ""
    if flags.package not in (None, "_global_"):
        part, head = OmegaConf.select(cfg, flags.package), f"# @package {flags.package}\n"
        if part is None:
            raise UserError(f"There is no package '{flags.package}'. {nearest(flags.package, map(str, cfg))}")
    if not isinstance(part, Container):
        return f"{part}\n"
    if flags.resolve:  # by way of plain values: OmegaConf.resolve cannot put a list where an interpolation stood
        part = OmegaConf.create(OmegaConf.to_container(part, resolve=True))
    return head + OmegaConf.to_yaml(part)


@contextmanager
def printed_whole(flags: Namespace) -> Iterator[None]:
    """Print at its end what a block prints for a flag that shows something; what a run prints stays as it comes.

    Hydra itself would take a reader that has gone, as in `--help | head`, for a fault of the program.
    """
    if not any(getattr(flags, name) for name in SHOWN):
        yield
        return
    text = StringIO()
    try:
        with redirect_stdout(text):
            yield
    finally:
        print(text.getvalue(), end="")


def _refuse(message: str) -> NoReturn:
    raise UserError(f"{message[0].upper()}{message[1:]}. Write key=value, or a flag of python train.py --hydra-help.")
