"""MoEE's main table and its ablation of tokens and layers, scored by mteb: readings x template x attention.

Li and Zhou, arXiv 2410.10814, tables 3 to 5. All readings of a template and attention come from one forward pass, as of
evaluate.py readings=[...]. Scores lie in mteb's layout below the answer's folder, for `python -m analysis`.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.drawings.style import house_style, mark
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from cli.compose import composed, plain
from cli.limits import real
from evaluation.candidates.candidates import Candidate
from evaluation.candidates.readings import ReadingCandidate, read_by
from evaluation.tasks.task_data import TYPES
from representation.encoders_studied import Subject
from representation.moee.vectors import mixtures
from representation.progress import each
from representation.texts import Texts

if TYPE_CHECKING:
    from evaluation.tasks.chosen import TaskSet


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


def main_readings(alpha: float) -> dict[str, str]:
    """Name -> reading of the paper's tables 3 and 4."""
    total = "moee:sum" if alpha == 1 else f"moee:sum@{alpha:f}"
    return {"HS": "moee:hidden", "RW": "moee:routing", "concat": "moee:concat", "sum": total}


def type_means(frame: pd.DataFrame) -> pd.DataFrame:
    """(block, reading) x type: the mean over seeds and tasks of a type, each task once, and their mean over types."""
    by_task = frame.groupby([*BLOCK, "reading", "type", "task"], observed=True, sort=False)["score"].mean()
    means = by_task.groupby(level=[*BLOCK, "reading", "type"], observed=True, sort=False).mean().unstack("type")
    means = means[sorted(means.columns, key=list(frame["type"].cat.categories).index)]
    means.columns = means.columns.astype(str)
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
    means = type_means(frame)
    rows = []
    for block in dict.fromkeys(key[:-1] for key in means.index):
        own = means.loc[block].loc[list(readings.values())]
        best = own.max()
        for label, word in readings.items():
            cells = [Cell(score(v), style="best" if v == best[c] else "") for c, v in own.loc[word].items()]
            rows.append([*map(Cell, block), Cell(label), *cells])
    head = ["Encoder", "Template", "Attention", "Reading", *means.columns]
    return Grid(name, caption, head, rows, left=4, title=title)


@house_style()
def score_drawing(frame: pd.DataFrame, alpha: float, over: str) -> Drawing:
    """A panel for each template and attention: the score of each task type, a mark for each reading."""
    from matplotlib.figure import Figure

    means, readings = type_means(frame), main_readings(alpha)
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
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper")
    caption = f"Mean main score of mteb by task type and reading, a panel for each template and attention; {over}."
    best = ", ".join(f"{', '.join(b)}: {_best(means, b, readings)}" for b in blocks)
    return Drawing("moee_main", "Readings of a mixture of experts", caption, f"Best mean of types: {best}.", figure)


def _best(means: pd.DataFrame, block: tuple[str, ...], readings: Mapping[str, str]) -> str:
    own = means.loc[block].loc[list(readings.values()), MEAN]
    return next(label for label, word in readings.items() if word == own.idxmax())


Config = dict[str, Any]
LIMITS = {"moee_readings.alpha": real(0)}
FOLDER = "moee_scores"


def answer(subjects: list[Subject], texts: Texts, settings: Config) -> Answer | None:
    """None where no encoder is a mixture of experts."""
    own = settings["moee_readings"]
    found = mixtures(subjects)
    if not found:
        return None
    from representation.command import output_folder

    place = output_folder(settings, subjects[0].candidate.results) / FOLDER
    words = {**main_readings(own["alpha"]), **ABLATION}
    cells = {c.title: (_name(s), c) for s in found for c in cells_of(s.candidate, own, place)}
    frame = scores(list(cells.values()), list(words.values()), texts.task_set, settings)
    over = f"{frame['task'].nunique()} tasks of {texts.benchmark}"
    main = frame[frame["reading"].isin(main_readings(own["alpha"]).values())]
    return Answer(
        "moee_readings",
        "MoEE's readings",
        [main_grid(main, own["alpha"], over), ablation_grid(frame, over)],
        lambda: [score_drawing(main, own["alpha"], over)],
        {"moee_readings": frame},
        [
            f"alpha = {own['alpha']:g} of the sum; chosen on docs_dev by python -m evaluation.alpha.",
            "Differences with tests: python -m analysis scores=<out>/moee_scores factors=[pooler,attn,template].",
            "instruct without an instruction is the bare text, closed by EOS, whose state and routing are read; "
            "prompteol reads the prompt's last token.",
        ],
    )


def _name(subject: Subject) -> str:
    """The label without the attention, which the table tells."""
    return subject.label.removesuffix(f", {subject.config['attn']['name']}")


def cells_of(candidate: Candidate, own: Config, place: Path) -> list[Candidate]:
    """Return the candidate under each template and, where it is no run, each attention; their scores go to `place`."""
    config = candidate.manifest["config"]
    attentions = [config["attn"]] if candidate.trained else [_group("attn", name) for name in own["attn"]]
    return [
        _changed(candidate, attn, _group("template", template), place)
        for template in own["templates"]
        for attn in attentions
    ]


def _group(group: str, name: str) -> Config:
    """The file `name` of a folder of conf/. Raises `UserError` for one that there is not."""
    config: Config = plain(composed("evaluate", [f"{group}={name}"]))[group]
    return config


def _changed(candidate: Candidate, attn: Config, template: Config, place: Path) -> Candidate:
    manifest = candidate.manifest
    study = str(manifest["study"]).split(",template=")[0]
    own = {
        "study": study if template["name"] == "instruct" else f"{study},template={template['name']}",
        "attn": attn["name"],
        "config": {**manifest["config"], "attn": attn, "template": template},
    }
    return replace(candidate, manifest={**manifest, **own}, results=place)


def scores(cells: list[tuple[str, Candidate]], words: list[str], task_set: "TaskSet", settings: Config) -> pd.DataFrame:
    """Return one row a (cell, reading, task). What was scored before is not scored again. cells: with their labels."""
    from cli.quiet import quiet
    from evaluation.instructions import read_instructions
    from evaluation.plan.plan import make_plan
    from evaluation.scoring import Options, score

    labels = {cell.title: label for label, cell in cells}
    readings = read_by([cell for _, cell in cells], list(dict.fromkeys(words)))
    with quiet():
        plan = make_plan(readings, task_set, settings)
    print(f"Readings to score: {plan.text}", file=sys.stderr, flush=True)
    rows: list[Config] = []
    for reading in each(readings, "scored", settings, lambda r: str(r.title)):
        assert isinstance(reading, ReadingCandidate)
        assert reading.of is not None
        config = reading.manifest["config"]
        options = Options(read_instructions(config["evaluation"]["instructions"]), cache_dir=plan.place.cache_dir)
        outcome = score(reading, task_set.tasks, options)
        about = {
            "encoder": labels[reading.of.title],
            "seed": reading.manifest["seed"],
            "template": config["template"]["name"],
            "attn": config["attn"]["name"],
            "reading": reading.reading,
        }
        rows += [{**about, "type": kind, "task": task, "score": v} for task, (kind, v) in outcome.scores.items()]
    frame = pd.DataFrame(rows)
    order = [kind for kind in TYPES if kind in set(frame["type"])]
    return frame.assign(type=pd.Categorical(frame["type"], order, ordered=True))
