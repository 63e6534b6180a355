"""MoEE's main table and its ablation of tokens and layers, scored by mteb: variants x template x attention.

Li and Zhou, arXiv 2410.10814, tables 3 to 5. All variants of a template and attention come from one forward pass, as of
evaluate.py variants=[...]. Scores lie in mteb's layout below the section's folder, for `python -m analysis`.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.render import Section, Table, in_percent
from cli.compose import composed, plain
from cli.limits import real
from evaluation.candidates import Candidate
from evaluation.tasks.chosen import TaskSet
from evaluation.tasks.task_data import TYPES
from evaluation.variants import read_by
from representation.encoders_studied import Studied
from representation.moee.mixtures import HS_AND_RW, mixtures
from representation.texts import Texts
from representation.variants import score_variants, type_means

Config = dict[str, Any]
PLACE = 110
LIMITS = {"moee_variants.alpha": real(0)}
FOLDER = "moee_scores"
BLOCK = ["encoder", "template", "attn"]
MEAN = "mean of types"
ABLATION = {  # of the paper's table 5, and the concatenation of layers, which keeps more than their mean
    "HS: last token, last layer": "moee:hidden",
    "HS: last token, mean of layers": "moee:hidden/last/mean",
    "HS: last token, all layers joined": "moee:hidden/last/all",
    "HS: mean of tokens, last layer": "moee:hidden/mean",
    "HS: mean of tokens, mean of layers": "moee:hidden/mean/mean",
    "HS: mean of tokens, all layers joined": "moee:hidden/mean/all",
    "RW: last token": "moee:routing",
    "RW: mean of tokens": "moee:routing/mean",
}


def section(encoders: list[Studied], texts: Texts, settings: Config) -> Section | None:
    """Return the section; None where no encoder is a mixture of experts."""
    keys = settings["moee_variants"]
    experts = mixtures(encoders)
    if not experts:
        return None
    alpha, place = keys["alpha"], Path(settings["out"]) / FOLDER
    words = [*main_variants(alpha).values(), *ABLATION.values()]
    cells = {  # the table has a column for the attention
        cell.title: (studied.label.removesuffix(f", {studied.config['attn']['name']}"), cell)
        for studied in experts
        for cell in cells_of(studied.candidate, keys, place)
    }
    frame = scores(cells, words, texts.task_set, settings)
    over = f"{frame['task'].nunique()} tasks of {texts.benchmark}; alpha = {alpha:g}"
    tables = [
        _table("moee-main", "Variants, templates and attention", means_of(frame, main_variants(alpha)), over),
        _table("moee-ablation", "Tokens and layers", means_of(frame, ABLATION), over),
    ]
    notes = ["Differences with tests: python -m analysis scores=<out>/moee_scores factors=[pooler,attn,template]."]
    return Section("moee_variants", "MoEE's variants", tables, frames={"moee_variants": frame}, notes=notes)


def main_variants(alpha: float) -> dict[str, str]:
    """Name -> variant of the paper's tables 3 and 4."""
    return HS_AND_RW | {"concat": "moee:concat", "sum": "moee:sum" if alpha == 1 else f"moee:sum@{alpha:f}"}


def cells_of(candidate: Candidate, keys: Config, place: Path) -> list[Candidate]:
    """Return the candidate under each template and, where it is no run, each attention; their scores go to `place`."""
    manifest = candidate.manifest
    config, study = manifest["config"], manifest["study"]
    attentions = [config["attn"]] if candidate.trained else [_group("attn", name) for name in keys["attn"]]
    cells = []
    for template, attn in product((_group("template", name) for name in keys["templates"]), attentions):
        changed = {
            "study": study if template == config["template"] else f"{study}+template-{template['name']}",
            "attn": attn["name"],
            "config": {**config, "attn": attn, "template": template},
        }
        cells.append(replace(candidate, manifest={**manifest, **changed}, results=place))
    return cells


def _group(group: str, name: str) -> Config:
    """Return the option `name` of a group of conf/. Raises `UserError` for one that there is not."""
    config: Config = plain(composed("evaluate", [f"{group}={name}"]))[group]
    return config


def scores(
    cells: Mapping[str, tuple[str, Candidate]], words: list[str], task_set: TaskSet, settings: Config
) -> pd.DataFrame:
    """Return one row per (cell, variant, task). cells: title -> (label, cell)."""
    variants = read_by([cell for _, cell in cells.values()], list(dict.fromkeys(words)))
    rows: list[Config] = []
    for variant, kind, task, value in score_variants(variants, task_set, settings):
        assert variant.of is not None
        config = variant.manifest["config"]
        about = {"encoder": cells[variant.of.title][0], "seed": variant.manifest["seed"]}
        about |= {"template": config["template"]["name"], "attn": config["attn"]["name"], "variant": variant.variant}
        rows.append({**about, "type": kind, "task": task, "score": value})
    return pd.DataFrame(rows)


def means_of(frame: pd.DataFrame, variants: Mapping[str, str]) -> pd.DataFrame:
    """Return (encoder, template, attention, variant) x types: the mean over seeds and tasks, and over types."""
    means = type_means(frame, [*BLOCK, "variant"])
    means = means[[kind for kind in TYPES if kind in means]]
    means = means.assign(**{MEAN: means.mean(axis=1)}).reset_index()
    named = pd.DataFrame({"variant": list(variants.values()), "": list(variants)})
    blocks = means[BLOCK].drop_duplicates().merge(named, how="cross")
    return blocks.merge(means, on=[*BLOCK, "variant"]).drop(columns="variant").rename(columns={"": "variant"})


def _table(name: str, title: str, means: pd.DataFrame, over: str) -> Table:
    caption = (
        f"Mean main score of mteb by task type; {over}. HS: hidden state after the last layer; RW: routing weights in "
        "all layers; sum: cos(HS) + alpha cos(RW) as one vector."
    )
    return Table(name, title, caption, means, in_percent(means), left=4)
