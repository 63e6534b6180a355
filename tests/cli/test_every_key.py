"""Every key of conf/, of every program, with values of a wrong kind, out of range and unknown: one line that names it.

The keys are drawn from conf/ and the values from what stands there, so that a new key is tested by being there.
"""

import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Any

import pytest
from omegaconf import OmegaConf

from analysis.settings import LISTS, TEXTS, settings_from
from cli.compose import CONF, FREE, OF_A_SOURCE, composed, flat, options, own_values, plain
from cli.errors import UserError
from cli.kinds import WHERE_NULL, kind_of, kinds
from evaluation.command import check as check_evaluate
from evaluation.command import check_encoder
from poolers.shared.registry import build_pooler
from representation.command import check as check_representation
from studies.jobs import split_words, study_jobs
from training.checks import check_sizes
from training.mine.command import check as check_mine
from training.specialise.command import check as check_specialise

Config = dict[str, Any]
# Texts in which any word may stand: files, columns, data sets, models, wordings, names of one's own.
ANY_TEXT = (
    *("study", "runs_dir", "cache_dir", "model.name", "model.path", "data.name", "template.name", "benchmark.name"),
    *("template.query.", "template.document.", "data.columns.", "data.reader", "data.texts", "data.column"),
    *("data.dataset", "data.files", "data.split", "data.subset", "objective.export", "query_name", "answer_name"),
)
OF_ANALYSIS = {  # whose names are looked up among the scores
    **{key: {"text", "texts"} for key in (*LISTS, "scores", "order.pooler", "order.attn")},
    **{key: {"text"} for key in (*TEXTS, "out", "task_types", "representation", "claims")},
    **{"type_weights": {"mapping"}, "rename": {"mapping"}, "figures": {"switch"}},
}
SOURCES = {  # what other keys are computed from: set there and resolved, as a command line would
    *("text_length", "attn.tokens", "attn.lastlayer_tokens_in_code", "template.query.bare"),
    *(f"head.{key}" for key in options("head")["small"]),
    *(f"token_choice.{key}" for key in own_values("encoder")["token_choice"]),
}
CALLED = {"attn.name": "attention pattern", "objective.name": "objective", "pooler.name": "pooler"}  # by their messages


def check_train(cfg: Config) -> None:
    check_sizes(cfg)
    build_pooler(cfg["pooler"], 32, 4, seed=0, experts=[4, 4])  # what depends on the number of layers


def check_scoring(check: Callable[[Config], Any]) -> Callable[[Config], None]:
    return lambda cfg: (check(cfg), check_encoder(cfg))


def each_option(words: list[str], *groups: str) -> list[tuple[list[str], str, str]]:
    """The words alone, and with each option of the groups in the place of the default; mixes are composed."""
    return [
        (words, "", ""),
        *((words, group, o) for group in groups for o in options(group) if o not in ("mix", "families", "clm")),
    ]


EXPERTS = ["adapter=mixse", "adapter.experts=[a,b]"]
MINED = ["run=x", "out=x.jsonl"]
OTHERS = ["experiment=pretrain_tiny"], ["data=mix"], ["data=families"], EXPERTS
TRAINED = [([*words], "", "") for words in OTHERS]
CHECKS = {  # program -> its checks, and (words, group, option) that have all of its keys
    "train": (check_train, [*each_option([], "pooler", "attn", "objective", "data", "launcher"), *TRAINED]),
    "evaluate": (check_scoring(check_evaluate), each_option([], "benchmark")),
    "representation": (check_scoring(check_representation), each_option([])),
    "mine": (check_mine, [*each_option(MINED, "data"), (["data=mix", *MINED], "", "")]),
    "specialise": (check_scoring(check_specialise), [(["out=x.jsonl"], "", "")]),
    "study": (lambda cfg: study_jobs(cfg, split_words([])), each_option([])),
    "analysis": (settings_from, each_option([f"scores={CONF}"])),
}


def bad_values(key: str, value: Any, known: dict[str, set[str]]) -> Iterator[Any]:
    """Yield values of other kinds than conf/ has at the key, one out of range of each number, and an unknown word."""
    name = OF_A_SOURCE.sub("data", key)
    allowed = known.get(name, {kind_of(value)}) - {"null"}
    for kind, wrong in {"mapping": {"zz": 1}, "texts": ["zz"], "number": 0.5, "switch": True, "text": "zz"}.items():
        if kind not in allowed and not (kind == "number" and not allowed):
            yield wrong
    if "number" in allowed or not allowed:
        yield from (-1e9, float("nan"))
    if "text" in allowed and not name.startswith(ANY_TEXT) and name not in {*WHERE_NULL, *OF_ANALYSIS}:
        yield "zz"


def faults(program: str) -> tuple[int, list[str]]:
    """Return how many bad inputs a program was given, and what was wrong with its answers."""
    check, bases = CHECKS[program]
    known = OF_ANALYSIS if program == "analysis" else kinds()
    tried, found, seen = 0, [], set()
    for words, group, option in bases:
        cfg = composed(program, words)
        if group:
            chosen = {key: value for key, value in options(group)[option].items() if key != "defaults"}
            OmegaConf.update(cfg, group, chosen, merge=False, force_add=True)
        base = plain(cfg)
        for key, value in flat(base).items():
            place = key, words == EXPERTS and key.startswith("adapter.")  # which mean something there alone
            if place in seen or key.startswith(FREE):
                continue
            seen.add(place)
            for bad in bad_values(key, value, known):
                tried += 1
                changed = resolved(cfg, key, bad) if key in SOURCES else replaced(base, key, bad)
                fault = answer(check, changed, key)
                found += [f"{program} {words} {option} {key}={bad!r}: {fault}"] if fault else []
    return tried, found


def resolved(cfg: Any, key: str, bad: Any) -> Config:
    changed = pickle.loads(pickle.dumps(cfg))
    OmegaConf.update(changed, key, bad, merge=False)
    return plain(changed)


def replaced(base: Config, key: str, bad: Any) -> Config:
    changed = deepcopy(base)
    *parents, last = key.split(".")
    reduce(getitem, parents, changed)[last] = bad
    return changed


def answer(check: Callable[[Config], Any], cfg: Config, key: str) -> str:
    """Return what is wrong with the answer to a bad input; "" for one line that names the key."""
    try:
        check(cfg)
    except UserError as error:  # cli.errors.guard makes exit code 2 of it
        named = key in str(error) or CALLED.get(key, key) in str(error)
        return "" if named and "\n" not in str(error) else f"does not name it in one line: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "passes"


TRIED = {
    "train": 982,
    "evaluate": 388,
    "representation": 490,
    "mine": 295,
    "specialise": 410,
    "study": 30,
    "analysis": 157,
}


@pytest.mark.parametrize("program", CHECKS)
def test_every_key(program):
    tried, found = faults(program)
    assert not found, f"{len(found)}\n" + "\n".join(found)
    assert tried >= TRIED[program], "keys have gone: mend the number here and in docs/guarantees.md"
