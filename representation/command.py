"""`python -m representation key=value ...`: runs in, tables and figures of what their layers and vectors hold out."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cli.compose import composed, own_keys, plain
from cli.errors import UserError, nearest
from cli.help import help_screen
from cli.limits import ENCODER, ENCODER_WORDS, SWITCH, Limit, check_limits
from cli.quoting import evaluate_words
from records.fingerprint import remember_below

if TYPE_CHECKING:
    from analysis.questions.question import Answer
    from representation.encoders_studied import Subject
    from representation.texts import Texts


# name -> module with `answer(subjects, texts, settings) -> Answer | None`; None where it does not apply to them.
# A question's own keys are settings[name], from conf/representation.yaml, and their limits `LIMITS` of its module.
QUESTIONS = {
    "layers": "representation.layers.layers",
    "geometry": "representation.geometry.geometry",
    "read_ahead": "representation.probes.read_ahead",
    "causal_against_bi": "representation.probes.causal_against_bi",
    "attribution": "representation.heads.attribution",
    "leave_one_layer_out": "representation.heads.leave_one_layer_out",
    "loss": "representation.loss",
    "prompts": "representation.moee.prompts",
    "complementarity": "representation.moee.complementarity",
    "batch_zscore": "representation.moee.batch_zscore",
    "moee_readings": "representation.moee.moee_readings",
}


class Question(Protocol):
    """A module of `QUESTIONS`, loaded when its turn comes."""

    def answer(self, subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> "Answer | None":
        """settings: the resolved conf/representation.yaml."""


def check_questions(names: Any) -> list[str]:
    """Return the names asked for, all for None. Raises `UserError` for one that there is not."""
    listed: Sequence[str] = [names] if isinstance(names, str) else list(QUESTIONS if names is None else names)
    for name in listed:
        if name not in QUESTIONS:
            raise UserError(f"There is no question '{name}'. {nearest(str(name), QUESTIONS)}")
    if not listed:
        raise UserError(f"questions= is an empty list. Choices: {', '.join(QUESTIONS)}.")
    return list(dict.fromkeys(listed))


def question(name: str) -> Question:
    """Return the module of a question."""
    return import_module(QUESTIONS[name])


Config = dict[str, Any]
LIMITS = ENCODER | {"texts": Limit(8), "texts_seed": Limit(0), "threads": Limit(1, "one for each core")}


def main(arguments: Sequence[str]) -> None:
    """Read the command line, look, print. Raises `UserError` for what the user can mend."""
    os.environ.setdefault("TQDM_DISABLE", "1")
    if {"-h", "--help"} & set(arguments):
        print(help_screen("representation"))
        return
    run(plain(composed("representation", evaluate_words(arguments, ("out",)))))


def run(cfg: Config) -> list[Any]:
    """Answer all that `cfg` (conf/representation.yaml) asks; return the answers that there are."""
    remember_below(cfg["cache_dir"])
    names = check_questions(cfg["questions"])
    modules = [question(name) for name in names]
    limits = {key: limit for module in modules for key, limit in getattr(module, "LIMITS", {}).items()}
    check_limits(cfg, LIMITS | limits, ENCODER_WORDS | {"progress": SWITCH})
    from representation.encoders_studied import subjects

    ours = set(own_keys("representation")) - set(own_keys("evaluate"))  # keys that say nothing of an encoder
    found = subjects({key: value for key, value in cfg.items() if key not in ours})
    folder = output_folder(cfg, found[0].candidate.results)
    from representation.texts import read_texts
    from representation.write import markdown, write_answer

    _limit_threads(cfg["threads"])
    texts = read_texts(cfg)
    print(f"{_over(found, texts)}\n{_cost(found, texts, names, cfg)}", file=sys.stderr, flush=True)
    answers = []
    for name, module in zip(names, modules, strict=True):
        answer = module.answer(found, texts, cfg)
        if answer is None:
            print(f"{name}: does not apply to these encoders.", file=sys.stderr)
            continue
        write_answer(answer, folder, _over(found, texts))
        answers.append(answer)
        print(markdown(answer), flush=True)
    print(f"Files: {folder}. Into a report: python -m analysis scores=... report=true representation={folder}")
    return answers


def output_folder(cfg: Config, results: Path) -> Path:
    """Return `out`, else `representation` beside the scores. Raises `UserError` where a file is in the way."""
    folder = Path(cfg["out"] or results.parent / "representation")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"out={folder} is a file. Name a folder with out=<folder>.")
    return folder


def _over(found: Sequence[Any], texts: Any) -> str:
    return f"{len(found)} encoder{'s' * (len(found) > 1)} ({', '.join(s.label for s in found)}); {texts.over}."


def _cost(found: Sequence[Any], texts: Any, names: Sequence[str], cfg: Config) -> str:
    """One pass over the sample for each encoder and question, at the rate that was measured here before."""
    from evaluation.plan.plan import in_time
    from evaluation.plan.speed import rate_of

    tokens = sum(found[0].candidate.measure().lengths([text.text for text in texts.every], ""))
    rate = rate_of(Path(cfg["cache_dir"]), found[0].config, cfg["threads"])
    seconds = len(found) * len(names) * tokens / rate.tokens
    return (
        f"To read: {tokens:,} tokens for each encoder and each question ({', '.join(names)}): "
        f"about {in_time(seconds)} at {rate.tokens:,.0f} tokens/s ({rate.how}), and what a question says of its own."
    )


def _limit_threads(threads: int | None) -> None:
    if threads is None:
        return
    import torch

    torch.set_num_threads(threads)
