"""Steadiness of routing weights and of hidden states when the prompt is worded in other ways.

MoEE (Li and Zhou, arXiv 2410.10814, sections 3.2 and 4.4, figures 4 and 5). The same pairs of texts are embedded under
every prompt of conf/tables/prompts.yaml; the score is that of each prompt, the agreement that of two prompts'
similarities.
"""

from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.heat import colour_bar
from analysis.drawings.style import BLACK
from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from cli.compose import options
from cli.errors import UserError, nearest
from cli.limits import Limit, real
from encoders.templates import TEXT_FIELD, Form, Template, pieces
from encoders.text_encoder import TextEncoder
from encoders.tokens import TextTokenizer
from representation.encoders_studied import Studied
from representation.figures import likeness_map, mark_panels, tables_of
from representation.moee.mixtures import HS_AND_RW, mixtures
from representation.moee.pair_tasks import Floats, PairTask, left_out, measures, once, pair_tasks, size
from representation.moee.prompt_stability import DIFFERENCE, correlation_matrix, measured, over_tasks, stability
from representation.question import each
from representation.readings import encode, readings_of
from representation.texts import Texts

Config = dict[str, Any]
PLACE = 80
LIMITS = {"prompts.pairs": Limit(8), "prompts.alpha": real(0)}
WORDS = {"prompts.wordings": tuple(options("prompts"))}
STATISTICS = {
    "mean": "Mean score",
    "spread": "Standard deviation over prompts",
    "agreement": "Spearman between prompts",
}


def answer(encoders: list[Studied], texts: Texts, settings: Config) -> Answer | None:
    """Return the answer; None where no encoder is a mixture of experts, or no task is of pairs."""
    keys = settings["prompts"]
    templates = prompt_templates(keys["wordings"])
    tasks = pair_tasks(texts.task_set.data.values(), keys["pairs"], settings["texts_seed"])
    experts = mixtures(encoders)
    if not experts or not tasks:
        return None
    samples = [np.concatenate([once(len(t.left)), left_out(t.units)]) for t in tasks]
    rows, steady, maps = [], [], {}
    for studied in each(experts, "prompts", settings):
        of_tasks = maps[studied.label] = similarities(studied, templates, tasks, keys["alpha"])
        rows += _scores(studied.label, of_tasks, tasks, list(templates))
        parts = [measured(*of_task) for of_task in zip(tasks, of_tasks, samples, strict=True)]
        steady += [{"encoder": studied.label, **row} for row in stability(over_tasks(parts))]
    scores, stable = pd.DataFrame(rows), pd.DataFrame(steady)
    names, over = list(templates), f"{size(tasks)} of {texts.benchmark}"
    return Answer(
        "prompts",
        "Prompts: how steady are HS and RW?",
        [stability_grid(stable, over), _score_grid(scores, f"{measures(tasks)}); {over}")],
        lambda: [
            score_spread(scores, over),
            *(correlation_map(label, of_tasks, names, over, k) for k, (label, of_tasks) in enumerate(maps.items())),
        ],
        {"prompts_scores": scores, "prompts_stability": stable},
        _notes(stable, templates),
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
    studied: Studied, templates: dict[str, Template], tasks: list[PairTask], alpha: float
) -> list[dict[str, Floats]]:
    """Return for each task reading -> [prompts, n] cosine similarities; one forward pass per text and prompt."""
    readings = readings_of(studied, HS_AND_RW | {"sum": f"moee:sum@{alpha:f}"})
    of_tasks: list[dict[str, list[Floats]]] = [{} for _ in tasks]
    for template in templates.values():
        encoder = worded(studied.encoder(), template)
        for of_readings, task in zip(of_tasks, tasks, strict=True):
            for name, vectors in encode(readings, encoder, task.texts).items():
                of_readings.setdefault(name, []).append(task.similarities(vectors))
    return [{name: np.stack(rows) for name, rows in of_readings.items()} for of_readings in of_tasks]


def worded(encoder: TextEncoder, template: Template) -> TextEncoder:
    """Return `encoder` under another template, which leaves a text the tokens that it has without a prompt.

    Within one max_length long prompts would cut more of the text than short ones, and prompts differ in what is read.
    Raises `UserError` where that is more than the decoder has positions.
    """
    usual = encoder.tokenizer
    words = [part for part in pieces(template.query.bare) if part != TEXT_FIELD]
    ids = [usual.tokenizer(w, add_special_tokens=False, split_special_tokens=True)["input_ids"] for w in words]
    added = sum(map(len, ids))
    length = usual.max_length - usual.template.eos + template.eos + added
    positions = encoder.encoder.backbone.config.get_text_config().max_position_embeddings
    if length > positions:
        raise UserError(
            f"The prompt {template.name} adds {added} tokens to max_length={usual.max_length}, which is more than the "
            f"{positions} positions of this decoder. Lower max_length."
        )
    tokenizer = TextTokenizer(usual.tokenizer, length, usual.padding_side, template)
    return TextEncoder(encoder.encoder, tokenizer, f"{encoder.fingerprint} {template.name}", encoder.token_budget)


def _scores(label: str, of_tasks: list[dict[str, Floats]], tasks: list[PairTask], prompts: list[str]) -> list[Config]:
    return [
        {
            **{"encoder": label, "task": task.name, "reading": reading, "prompt": prompt},
            "score": float(task.score(row, once(len(row)))[0]),
        }
        for task, readings in zip(tasks, of_tasks, strict=True)
        for reading, rows in readings.items()
        for prompt, row in zip(prompts, rows, strict=True)
    ]


def stability_grid(stable: pd.DataFrame, over: str) -> Grid:
    """One row per encoder and reading, with 95 % intervals; the difference RW minus HS below them."""
    rows = []
    for (label, reading), values in stable.groupby(["encoder", "reading"], sort=False):
        form, cells = signed if reading == DIFFERENCE else score, dict.fromkeys(STATISTICS, Cell(""))
        for row in values.itertuples():
            cells[row.statistic] = Cell(form(row.value), below=(f"[{form(row.low)}, {form(row.high)}]",))
        rows.append([Cell(label), Cell(reading), *cells.values()])
    caption = (
        f"Over the prompts, mean over tasks; {over}. Below each value its 95 % jackknife interval over the pairs "
        "(those with the same left text are left out together). HS-RW: Spearman correlation of similarities by HS "
        "with those by RW, under the same prompt and under others."
    )
    header = ["Encoder", "Reading", *STATISTICS.values()]
    return Grid("prompts-stability", caption, header, rows, left=2, title="Stability over prompts")


def _score_grid(frame: pd.DataFrame, over: str) -> Grid:
    rows = [
        [Cell(label), Cell(reading), *(Cell(score(mean)) for mean in table[reading])]
        for label, table in tables_of(frame, "prompt", "reading", "score").items()
        for reading in table
    ]
    prompts = frame["prompt"].unique()
    caption = f"Score of each prompt, mean over tasks ({over}."
    return Grid("prompts-scores", caption, ["Encoder", "Reading", *prompts], rows, left=2, title="Scores by prompt")


def _notes(stable: pd.DataFrame, templates: dict[str, Template]) -> list[str]:
    wordings = "; ".join(f"{name}: {t.query.bare}" for name, t in templates.items())
    notes = [
        f"Prompts: {wordings}",
        "Every prompt leaves a text as many tokens as it has without a prompt; tasks' instructions are left out.",
        "The standard deviation over prompts holds the noise of few pairs too: equally good prompts have one as well. "
        "The prompts are these, not a sample of prompts: intervals are over pairs alone.",
    ]
    for label, values in stable[stable["reading"] == DIFFERENCE].groupby("encoder", sort=False):
        low, high = (values.set_index("statistic")[end] for end in ("low", "high"))
        by_score = steadier(high["spread"] < 0, low["spread"] > 0)
        by_pairs = steadier(low["agreement"] > 0, high["agreement"] < 0)
        notes.append(f"{label}: by the spread of scores {by_score}; by the agreement of similarities {by_pairs}.")
    return notes


def steadier(routing: bool, hidden: bool) -> str:
    """Name the side whose interval of the difference leaves out zero."""
    return "RW is steadier" if routing else "HS is steadier" if hidden else "neither is told to be steadier"


def score_spread(frame: pd.DataFrame, over: str) -> Drawing:
    """Draw one mark per prompt, one column per reading, one panel per encoder, as MoEE's figure 5."""
    panels = tables_of(frame, "prompt", "reading", "score")
    count = frame["prompt"].nunique()
    caption = (
        f"Score of {count} prompts (marks) by reading, mean over tasks; {over}. "
        "The line is the median over prompts: the narrower the column, the steadier the reading."
    )
    ranges = ", ".join(
        f"{label} {reading}: {scores.min():.3f} to {scores.max():.3f}"
        for label, table in panels.items()
        for reading, scores in table.items()
    )
    figure = mark_panels(panels, len(panels), ("score", ""), medians=True)
    return Drawing("prompts_scores", "Scores under each prompt", caption, f"Range over prompts: {ranges}.", figure)


def correlation_map(
    label: str, of_tasks: list[dict[str, Floats]], prompts: list[str], over: str, place: int
) -> Drawing:
    """Draw Spearman correlations of the pairs' similarities between all prompts of HS and RW, as MoEE's figure 4."""
    shown, count = [name for name in of_tasks[0] if name in ("HS", "RW")], len(prompts)
    matrix = np.mean([correlation_matrix({name: readings[name] for name in shown}) for readings in of_tasks], axis=0)
    names = [f"{reading} {prompt}" for reading in shown for prompt in prompts]
    figure = canvas(1.9 + 0.27 * len(names), 1.5 + 0.27 * len(names))
    axes = figure.add_subplot()
    mesh = likeness_map(axes, matrix, float(np.nanmin(matrix)), 5)
    for border in range(count, len(names), count):  # between the readings
        axes.axhline(border - 0.5, color=BLACK, linewidth=0.8)
        axes.axvline(border - 0.5, color=BLACK, linewidth=0.8)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    colour_bar(figure, mesh, axes, "Spearman correlation", shrink=0.7)
    axes.set_title(label)
    caption = (
        f"Spearman correlation of the pairs' similarities under two prompts, HS and RW of {label}, mean over tasks; "
        f"{over}. Upper left HS with HS, lower right RW with RW, the other blocks HS with RW."
    )
    blocks = matrix.reshape(len(shown), count, len(shown), count)
    apart = ~np.eye(count, dtype=bool)
    means = ", ".join(f"{name} {blocks[k, :, k][apart].mean():.2f}" for k, name in enumerate(shown))
    title = f"Agreement between prompts: {label}"
    return Drawing(f"prompts_agreement_{place}", title, caption, f"Mean between two prompts: {means}.", figure)
