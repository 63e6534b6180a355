"""From a configuration to answers: reads encoders and texts, puts each question to them, prints and writes."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from analysis.drawings.drawing import drawn
from analysis.questions.question import Answer
from cli.compose import own_keys
from cli.errors import UserError, nearest
from cli.limits import Limit, check_dims, check_limits
from encoders.limits import ENCODER
from evaluation.command import LIMITS as SCORING
from evaluation.command import WORDS as SCORING_WORDS
from representation.encoders_studied import read_encoders
from representation.question import questions
from representation.texts import read_texts
from representation.write import markdown, write_answer

Config = dict[str, Any]
LIMITS = ENCODER | {"texts": Limit(8), "texts_seed": Limit(0)}


def run(cfg: Config) -> list[Answer]:
    """Answer all that `cfg` (conf/representation.yaml) asks; return the answers that there are."""
    chosen = check(cfg)
    ours = set(own_keys("representation")) - set(own_keys("evaluate"))  # keys that say nothing of an encoder
    encoders = read_encoders({key: value for key, value in cfg.items() if key not in ours})
    folder = Path(cfg["out"] or encoders[0].candidate.results.parent / "representation")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"out={folder} is a file. Name a folder with out=<folder>.")
    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    texts = read_texts(cfg)
    labels = [studied.label for studied in encoders]
    over = f"{len(encoders)} encoder{'s' * (len(encoders) > 1)} ({', '.join(labels)}); {texts.over}."
    print(over, file=sys.stderr, flush=True)
    answers = []
    for name, question in chosen.items():
        answer = question.answer(encoders, texts, {**cfg, "out": str(folder)})
        if answer is None:
            print(f"{name}: does not apply to these encoders.", file=sys.stderr)
            continue
        answer = replace(answer, draw=partial(drawn, answer.draw))
        write_answer(answer, folder, over)
        answers.append(answer)
        print(markdown(answer), flush=True)
    print(f"Files: {folder}. Into a report: python -m analysis scores=... report=true representation={folder}")
    return answers


def check(cfg: Config) -> dict[str, ModuleType]:
    """Refuse numbers and words that are not allowed; return the questions that are asked, all for questions=null."""
    known, asked = questions(), cfg["questions"]
    if not isinstance(asked, str | list | None):
        raise UserError(f"questions={asked} must be a list of questions. Choices: {', '.join(known)}.")
    names = [asked] if isinstance(asked, str) else asked or list(known)
    for name in names:
        if name not in known:
            raise UserError(f"There is no question '{name}'. {nearest(str(name), known)}")
    chosen = {name: known[name] for name in names}
    limits = {key: limit for question in chosen.values() for key, limit in getattr(question, "LIMITS", {}).items()}
    words = {key: choices for question in chosen.values() for key, choices in getattr(question, "WORDS", {}).items()}
    check_limits(cfg, LIMITS | SCORING | limits, SCORING_WORDS | words)
    check_dims("evaluation.dims", cfg["evaluation"]["dims"])
    return chosen
