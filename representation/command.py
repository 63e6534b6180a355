"""From a configuration to sections: reads encoders and texts, computes, prints and writes."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from analysis.drawings.drawing import drawn
from analysis.render import Section
from cli.compose import own_keys
from cli.errors import UserError, nearest
from cli.limits import Limit, check_dims, check_limits
from evaluation.command import LIMITS as SCORING
from evaluation.command import WORDS as SCORING_WORDS
from representation.encoders_studied import read_encoders
from representation.sections import sections
from representation.texts import read_texts
from representation.write import write_section

Config = dict[str, Any]
LIMITS = SCORING | {"texts": Limit(8), "texts_seed": Limit(0)}


def run(cfg: Config) -> list[Section]:
    """Compute, print and write the tables that `cfg` (conf/representation.yaml) names; return their sections."""
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
    written = []
    for name, module in chosen.items():
        section = module.section(encoders, texts, {**cfg, "out": str(folder)})
        if section is None:
            print(f"{name}: does not apply to these encoders.", file=sys.stderr)
            continue
        section = replace(section, draw=partial(drawn, section.draw))
        print(write_section(section, folder, over), flush=True)
        written.append(section)
    print(f"Files: {folder}. Into a report: python -m analysis scores=... report=true representation={folder}")
    return written


def check(cfg: Config) -> dict[str, ModuleType]:
    """Refuse numbers and words that are not allowed; return the sections that are wanted, all for tables=null."""
    known, wanted = sections(), cfg["tables"]
    if not isinstance(wanted, str | list | None):
        raise UserError(f"tables={wanted} must be a list. Choices: {', '.join(known)}.")
    names = [wanted] if isinstance(wanted, str) else wanted or list(known)
    for name in names:
        if name not in known:
            raise UserError(f"There is no table '{name}'. {nearest(str(name), known)}")
    chosen = {name: known[name] for name in names}
    limits = {key: limit for module in chosen.values() for key, limit in getattr(module, "LIMITS", {}).items()}
    words = {key: choices for module in chosen.values() for key, choices in getattr(module, "WORDS", {}).items()}
    check_limits(cfg, LIMITS | limits, SCORING_WORDS | words)
    check_dims("evaluation.dims", cfg["evaluation"]["dims"])
    return chosen
