"""Whether routing weights are steadier than hidden states when the prompt is worded in other ways.

MoEE (Li and Zhou, arXiv 2410.10814, sections 3.2 and 4.4, figures 4 and 5). The same pairs of texts are embedded under
every prompt of conf/tables/prompts.yaml; the score is that of each prompt, the agreement that of two prompts'
similarities.
"""

from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from cli.compose import options
from cli.errors import UserError, nearest
from cli.limits import Limit, real
from encoders.templates import Form, Template
from representation.encoders_studied import Subject
from representation.moee.pair_tasks import Floats, PairTask, left_out, measures, once, pair_tasks, said
from representation.moee.prompt_stability import (
    Key,
    Value,
    correlation_map,
    difference,
    measured,
    over_tasks,
    score_spread,
    value,
)
from representation.moee.vectors import encode, mixtures, named_readings, readings_of, worded
from representation.progress import each
from representation.texts import Texts

Config = dict[str, Any]
LIMITS = {"prompts.pairs": Limit(8), "prompts.alpha": real(0)}
STATISTICS = {
    "mean": "Mean score",
    "spread": "Standard deviation over prompts",
    "agreement": "Spearman between prompts",
}
FLOORS = {"mean": -1.0, "spread": 0.0, "agreement": -1.0}


def answer(subjects: list[Subject], texts: Texts, settings: Config) -> Answer | None:
    """None where no encoder is a mixture of experts, or no task is of pairs."""
    own = settings["prompts"]
    templates = prompt_templates(own["wordings"])
    tasks = pair_tasks(list(texts.task_set.data.values()), own["pairs"], settings["texts_seed"])
    found = mixtures(subjects)
    if not found or not tasks:
        return None
    samples = [np.concatenate([once(len(t.left)), left_out(t.units)]) for t in tasks]
    rows, spreads, maps = [], {}, {}
    for subject in each(found, "prompts", settings):
        held = similarities(subject, templates, tasks, own["alpha"])
        rows += _scores(subject.label, held, tasks, list(templates))
        found_in = [measured(task, h, counts) for task, h, counts in zip(tasks, held, samples, strict=True)]
        spreads[subject.label], maps[subject.label] = over_tasks(found_in), held
    frames = {"prompts_scores": pd.DataFrame(rows), "prompts_stability": _stability_frame(spreads)}
    over = f"{said(tasks)} of {texts.benchmark}"
    drawings = [score_spread(frames["prompts_scores"], over)]
    drawings += [correlation_map(label, held, list(templates), over, k) for k, (label, held) in enumerate(maps.items())]
    grids = [
        stability_grid(spreads, over),
        _score_grid(frames["prompts_scores"], list(templates), f"{measures(tasks)}); {over}"),
    ]
    return Answer(
        "prompts", "Prompts: how steady are HS and RW?", grids, lambda: drawings, frames, _notes(spreads, templates)
    )


def prompt_templates(name: str) -> dict[str, Template]:
    """Return name -> template of a list of prompts in conf/tables/prompts.yaml.

    Raises `UserError` for a list that there is not.
    """
    lists = options("prompts")
    if name not in lists:
        raise UserError(f"There is no prompts.wordings={name} in conf/tables/prompts.yaml. {nearest(name, lists)}")
    forms = {name: Form(wording, wording) for name, wording in lists[name].items()}
    return {name: Template(f"prompt {name}", form, form, eos=False) for name, form in forms.items()}


def similarities(
    subject: Subject, templates: dict[str, Template], tasks: list[PairTask], alpha: float
) -> list[dict[str, Floats]]:
    """Return for each task reading -> [prompts, n] cosine similarities; one forward pass a text and prompt."""
    readings = readings_of(subject, named_readings(alpha))
    held: list[dict[str, list[Floats]]] = [{} for _ in tasks]
    for template in templates.values():
        encoder = worded(subject.encoder(), template)
        for own, task in zip(held, tasks, strict=True):
            for name, vectors in encode(readings, encoder, task.texts, "").items():
                own.setdefault(name, []).append(task.similarities(vectors))
    return [{name: np.stack(rows) for name, rows in own.items()} for own in held]


def _scores(label: str, held: list[dict[str, Floats]], tasks: list[PairTask], prompts: list[str]) -> list[Config]:
    return [
        {
            "encoder": label,
            "task": task.name,
            "reading": reading,
            "prompt": prompt,
            "score": float(task.score(row, once(len(row)))[0]),
        }
        for task, own in zip(tasks, held, strict=True)
        for reading, rows in own.items()
        for prompt, row in zip(prompts, rows, strict=True)
    ]


def _stability_frame(spreads: dict[str, dict[Key, Floats]]) -> pd.DataFrame:
    rows = []
    for label, found in spreads.items():
        values = {key: value(parts, FLOORS[key[1]]) for key, parts in found.items()}
        values |= {("RW minus HS", s): difference(found, s) for s in STATISTICS}
        rows += [{"encoder": label, "reading": r, "statistic": s, **vars(v)} for (r, s), v in values.items()]
    return pd.DataFrame(rows)


def stability_grid(spreads: dict[str, dict[Key, Floats]], over: str) -> Grid:
    """One row an encoder and reading, with 95 % intervals; the difference RW minus HS below them."""
    rows = []
    for label, found in spreads.items():
        for reading in dict.fromkeys(reading for reading, _ in found):
            cells = [
                _cell(value(found[reading, s], FLOORS[s]), score) if (reading, s) in found else Cell("")
                for s in STATISTICS
            ]
            rows.append([Cell(label), Cell(reading), *cells])
        cells = [_cell(difference(found, s), signed) for s in STATISTICS]
        rows.append([Cell(label), Cell("RW minus HS"), *cells])
    caption = (
        f"Over the prompts, mean over tasks; {over}. Below each value its 95 % jackknife interval over the pairs "
        "(those with the same left text are left out together). HS-RW: Spearman correlation of similarities by HS "
        "with those by RW, under the same prompt and under others."
    )
    return Grid(
        "prompts-stability",
        caption,
        ["Encoder", "Reading", *STATISTICS.values()],
        rows,
        left=2,
        title="Stability over prompts",
    )


def _cell(found: Value, form: Any) -> Cell:
    return Cell(form(found.value), below=(f"[{form(found.low)}, {form(found.high)}]",))


def _score_grid(frame: pd.DataFrame, prompts: list[str], over: str) -> Grid:
    means = frame.pivot_table(index=["encoder", "reading"], columns="prompt", values="score", sort=False)
    rows = [
        [Cell(str(label)), Cell(str(reading)), *(Cell(score(means.loc[(label, reading), p])) for p in prompts)]
        for label, reading in means.index
    ]
    caption = f"Score of each prompt, mean over tasks ({over}."
    return Grid("prompts-scores", caption, ["Encoder", "Reading", *prompts], rows, left=2, title="Scores by prompt")


def _notes(spreads: dict[str, dict[Key, Floats]], templates: dict[str, Template]) -> list[str]:
    wordings = "; ".join(f"{name}: {t.query.bare}" for name, t in templates.items())
    notes = [
        f"Prompts: {wordings}",
        "Every prompt leaves a text as many tokens as it has without a prompt; tasks' instructions are left out.",
        "The standard deviation over prompts holds the noise of few pairs too: equally good prompts have one as well. "
        "The prompts are these, not a sample of prompts: intervals are over pairs alone.",
    ]
    for label, found in spreads.items():
        spread, agree = difference(found, "spread"), difference(found, "agreement")
        by_score = steadier(spread.high < 0, spread.low > 0)
        by_pairs = steadier(agree.low > 0, agree.high < 0)
        notes.append(f"{label}: by the spread of scores {by_score}; by the agreement of similarities {by_pairs}.")
    return notes


def steadier(routing: bool, hidden: bool) -> str:
    """Whose interval of the difference leaves out zero on the steadier side."""
    return "RW is steadier" if routing else "HS is steadier" if hidden else "neither is told to be steadier"
