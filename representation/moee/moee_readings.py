"""MoEE's main table and its ablation of tokens and layers, scored by mteb: readings x template x attention.

Li and Zhou, arXiv 2410.10814, tables 3 to 5. All readings of a template and attention come from one forward pass, as of
evaluate.py readings=[...]. Scores lie in mteb's layout below the answer's folder, for `python -m analysis`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.drawings.style import house_style, mark
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from cli.compose import composed, plain
from cli.limits import real
from evaluation.candidates.candidates import Candidate
from evaluation.candidates.readings import read_by
from evaluation.tasks.chosen import TaskSet
from evaluation.tasks.task_data import TYPES
from representation.encoders_studied import Studied
from representation.figures import legend
from representation.moee.mixtures import HS_AND_RW, mixtures
from representation.readings import score_readings, type_means
from representation.texts import Texts

Config = dict[str, Any]
PLACE = 110
LIMITS = {"moee_readings.alpha": real(0)}
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


def answer(encoders: list[Studied], texts: Texts, settings: Config) -> Answer | None:
    """Return the answer; None where no encoder is a mixture of experts."""
    keys = settings["moee_readings"]
    experts = mixtures(encoders)
    if not experts:
        return None
    alpha, place = keys["alpha"], Path(settings["out"]) / FOLDER
    words = [*main_readings(alpha).values(), *ABLATION.values()]
    cells = {  # the table has a column for the attention
        cell.title: (studied.label.removesuffix(f", {studied.config['attn']['name']}"), cell)
        for studied in experts
        for cell in cells_of(studied.candidate, keys, place)
    }
    frame = scores(list(cells.values()), words, texts.task_set, settings)
    over = f"{frame['task'].nunique()} tasks of {texts.benchmark}"
    main = frame[frame["reading"].isin(main_readings(alpha).values())]
    notes = [
        f"alpha = {alpha:g} of the sum; chosen on docs_dev by python -m evaluation.alpha.",
        "Differences with tests: python -m analysis scores=<out>/moee_scores factors=[pooler,attn,template].",
        "instruct without an instruction is the bare text, closed by EOS, whose state and routing are read; "
        "prompteol reads the prompt's last token.",
    ]
    grids, drawing = [main_grid(main, alpha, over), ablation_grid(frame, over)], score_drawing(main, alpha, over)
    return Answer("moee_readings", "MoEE's readings", grids, lambda: [drawing], {"moee_readings": frame}, notes)


def main_readings(alpha: float) -> dict[str, str]:
    """Name -> reading of the paper's tables 3 and 4."""
    return HS_AND_RW | {"concat": "moee:concat", "sum": "moee:sum" if alpha == 1 else f"moee:sum@{alpha:f}"}


def cells_of(candidate: Candidate, keys: Config, place: Path) -> list[Candidate]:
    """Return the candidate under each template and, where it is no run, each attention; their scores go to `place`."""
    config = candidate.manifest["config"]
    attentions = [config["attn"]] if candidate.trained else [_group("attn", name) for name in keys["attn"]]
    return [
        _changed(candidate, attn, _group("template", template), place)
        for template in keys["templates"]
        for attn in attentions
    ]


def _group(group: str, name: str) -> Config:
    """Return the option `name` of a group of conf/. Raises `UserError` for one that there is not."""
    config: Config = plain(composed("evaluate", [f"{group}={name}"]))[group]
    return config


def _changed(candidate: Candidate, attn: Config, template: Config, place: Path) -> Candidate:
    manifest = candidate.manifest
    study = str(manifest["study"]).split(",template=")[0]
    changed = {
        "study": study if template["name"] == "instruct" else f"{study},template={template['name']}",
        "attn": attn["name"],
        "config": {**manifest["config"], "attn": attn, "template": template},
    }
    return replace(candidate, manifest={**manifest, **changed}, results=place)


def scores(cells: list[tuple[str, Candidate]], words: list[str], task_set: TaskSet, settings: Config) -> pd.DataFrame:
    """Return one row per (cell, reading, task). cells: with their labels."""
    labels = {cell.title: label for label, cell in cells}
    readings = read_by([cell for _, cell in cells], list(dict.fromkeys(words)))
    rows: list[Config] = []
    for reading, kind, task, value in score_readings(readings, task_set, settings, "Readings"):
        assert reading.of is not None
        config = reading.manifest["config"]
        about = {"encoder": labels[reading.of.title], "seed": reading.manifest["seed"]}
        about |= {"template": config["template"]["name"], "attn": config["attn"]["name"], "reading": reading.reading}
        rows.append({**about, "type": kind, "task": task, "score": value})
    return pd.DataFrame(rows)


def block_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return (block, reading) x type: the mean over seeds and tasks of a type, and the mean over types."""
    means = type_means(frame, [*BLOCK, "reading"])
    means = means[[kind for kind in TYPES if kind in means]]
    return means.assign(**{MEAN: means.mean(axis=1)})


def main_grid(frame: pd.DataFrame, alpha: float, over: str) -> Grid:
    """HS, RW, their concatenation and their sum."""
    caption = (
        f"Mean main score of mteb by task type; {over}. HS: hidden state of the last token after the last layer; RW: "
        f"routing weights of the last token in all layers; sum: cos(HS) + alpha cos(RW) as one vector, "
        f"alpha = {alpha:g}. Best of each block in bold."
    )
    return _grid("moee-main", "Readings, templates and attention", frame, main_readings(alpha), caption)


def ablation_grid(frame: pd.DataFrame, over: str) -> Grid:
    """Tokens x layers of HS, tokens of RW."""
    caption = (
        f"Mean main score of mteb by task type; {over}. Mean of tokens: over a text's own tokens and what closes it. "
        "Best of each block in bold."
    )
    return _grid("moee-ablation", "Tokens and layers", frame, ABLATION, caption)


def _grid(name: str, title: str, frame: pd.DataFrame, readings: Mapping[str, str], caption: str) -> Grid:
    means = block_means(frame)
    rows = []
    for block in dict.fromkeys(key[:-1] for key in means.index):
        scores = means.loc[block].loc[list(readings.values())]
        best = scores.max()
        for label, word in readings.items():
            cells = [Cell(score(v), style="best" if v == best[c] else "") for c, v in scores.loc[word].items()]
            rows.append([*map(Cell, block), Cell(label), *cells])
    head = ["Encoder", "Template", "Attention", "Reading", *means.columns]
    return Grid(name, caption, head, rows, left=4, title=title)


@house_style()
def score_drawing(frame: pd.DataFrame, alpha: float, over: str) -> Drawing:
    """One panel per template and attention: the score of each task type, one marker per reading."""
    means, readings = block_means(frame), main_readings(alpha)
    blocks = list(dict.fromkeys(key[:-1] for key in means.index))
    columns = min(2, len(blocks))
    rows = -(-len(blocks) // columns)
    figure = Figure(figsize=(1.2 + 3.0 * columns, 0.6 + 2.0 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes, block in zip(panels.ravel(), blocks, strict=False):
        for k, (label, word) in enumerate(readings.items()):
            look, values = mark(k), means.loc[(*block, word)]
            xs = [x + 0.12 * (k - 1.5) for x in range(len(values))]
            axes.plot(xs, values, look.shape, color=look.colour, markersize=4, label=label)
        axes.set_xticks(range(len(means.columns)), means.columns, rotation=30, ha="right")
        axes.set_title(", ".join(block))
        axes.grid(axis="y")
    for axes in panels.ravel()[len(blocks) :]:
        axes.set_visible(False)
    legend(figure, panels[0, 0])
    caption = f"Mean main score of mteb by task type and reading, a panel for each template and attention; {over}."
    best = ", ".join(f"{', '.join(b)}: {_best(means, b, readings)}" for b in blocks)
    return Drawing("moee_main", "Readings of a mixture of experts", caption, f"Best mean of types: {best}.", figure)


def _best(means: pd.DataFrame, block: tuple[str, ...], readings: Mapping[str, str]) -> str:
    best = means.loc[block].loc[list(readings.values()), MEAN].idxmax()
    return next(label for label, word in readings.items() if word == best)
