"""Steadiness of routing weights and of hidden states when the prompt is worded in other ways.

MoEE (Li and Zhou, arXiv 2410.10814, sections 3.2 and 4.4, figures 4 and 5). The same pairs of texts are embedded under
every prompt of prompts.wordings; the score is that of each prompt, the agreement that of two prompts'
similarities.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from analysis.drawings.drawing import Drawing
from analysis.formats import Unit
from analysis.render import Section, Table, in_percent
from analysis.statistics.arrays import Floats
from cli.errors import UserError
from cli.limits import Limit, real
from encoders.templates import TEXT_FIELD, Form, Template, pieces
from encoders.text_encoder import TextEncoder
from encoders.tokens import TextTokenizer
from representation.encoders_studied import Studied
from representation.figures import heat_panels
from representation.moee.mixtures import HS_AND_RW, mixtures
from representation.moee.pair_tasks import SCORE, PairTask, pair_tasks, size
from representation.sections import each
from representation.texts import Texts
from representation.variants import encode, variants_of

Config = dict[str, Any]
OfTask = dict[str, Floats]  # variant -> [prompts, n] similarities of n pairs
PLACE = 80
LIMITS = {"prompts.pairs": Limit(8), "prompts.alpha": real(0)}
STATISTICS = {
    "mean": "Mean score",
    "spread": "Standard deviation over prompts",
    "agreement": "Spearman between prompts",
}


def section(encoders: list[Studied], texts: Texts, settings: Config) -> Section | None:
    """Return the section; None where no encoder is a mixture of experts, or no task is of pairs."""
    keys = settings["prompts"]
    templates = prompt_templates(keys["wordings"])
    tasks = pair_tasks(texts.task_set.data.values(), keys["pairs"], settings["texts_seed"])
    experts = mixtures(encoders)
    if not experts or not tasks:
        return None
    rows, steady, cells = [], [], []
    for studied in each(experts, "prompts", settings):
        about, of_tasks = {"encoder": studied.label}, similarities(studied, templates, tasks, keys["alpha"])
        rows += [about | row for row in scores(of_tasks, tasks, list(templates))]
        steady += [about | row for row in stability(of_tasks, tasks)]
        cells += [about | cell for cell in correlations(of_tasks, list(templates))]
    frame, stable, maps = pd.DataFrame(rows), pd.DataFrame(steady), pd.DataFrame(cells)
    over = f"mean over tasks; {size(tasks)} of {texts.benchmark}"
    by_prompt = frame.pivot_table(index=["encoder", "variant"], columns="prompt", values="score", sort=False)
    wide = stable.pivot(index=["encoder", "variant"], columns="statistic", values="value").reset_index()
    wide = wide[["encoder", "variant", *STATISTICS]].rename(columns=STATISTICS)
    steadiness = f"Over the prompts, {over}. HS-RW: correlation of similarities by HS with those by RW."
    by_prompt = by_prompt.reset_index()
    shares = dict.fromkeys(list(STATISTICS.values())[:2], Unit().score)
    tables = [
        Table("prompts-stability", "Stability over prompts", steadiness, wide, shares, left=2),
        Table("prompts-scores", "Scores by prompt", f"{SCORE}, {over}.", by_prompt, in_percent(by_prompt), left=2),
    ]
    wordings = "; ".join(f"{name}: {t.query.bare}" for name, t in templates.items())
    return Section(
        "prompts",
        "Prompts: how steady are HS and RW?",
        tables,
        lambda: [_maps(maps, over)],
        {"prompts_scores": frame, "prompts_stability": stable},
        [f"Prompts: {wordings}", "Every prompt leaves a text as many tokens as it has without a prompt."],
    )


def prompt_templates(wordings: dict[str, str]) -> dict[str, Template]:
    """Return name -> template of each wording, in which {text} stands for the text."""
    forms = {name: Form(wording, wording) for name, wording in wordings.items()}
    return {name: Template(f"prompt {name}", form, form, eos=False) for name, form in forms.items()}


def similarities(studied: Studied, templates: dict[str, Template], tasks: list[PairTask], alpha: float) -> list[OfTask]:
    """Return for each task variant -> [prompts, n] cosine similarities; one forward pass per text and prompt."""
    variants = variants_of(studied, HS_AND_RW | {"sum": f"moee:sum@{alpha:f}"})
    of_tasks: list[dict[str, list[Floats]]] = [{} for _ in tasks]
    for template in templates.values():
        encoder = worded(studied.encoder(), template)
        for of_variants, task in zip(of_tasks, tasks, strict=True):
            for name, vectors in encode(variants, encoder, task.texts).items():
                of_variants.setdefault(name, []).append(task.similarities(vectors))
    return [{name: np.stack(rows) for name, rows in of_variants.items()} for of_variants in of_tasks]


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
    return TextEncoder(encoder.encoder, tokenizer, f"{encoder.fingerprint} {template.name}", encoder.back_off.budget)


def scores(of_tasks: list[OfTask], tasks: list[PairTask], prompts: list[str]) -> list[Config]:
    """Return a row per task, variant and prompt."""
    return [
        {"task": task.name, "variant": variant, "prompt": prompt, "score": task.score(row)}
        for task, variants in zip(tasks, of_tasks, strict=True)
        for variant, rows in variants.items()
        for prompt, row in zip(prompts, rows, strict=True)
    ]


def stability(of_tasks: list[OfTask], tasks: list[PairTask]) -> list[Config]:
    """Return per variant and statistic the mean over tasks.

    "mean", "spread": mean and standard deviation (n - 1) of the score over prompts; "agreement": mean Spearman
    correlation of the pairs' similarities between two prompts; for the variant "HS-RW" between HS and RW, under the
    same prompt and under others. The spread holds the noise of few pairs too.
    """
    each_task: list[dict[tuple[str, str], float]] = []
    for task, of_variants in zip(tasks, of_tasks, strict=True):
        of_scores = {name: [task.score(row) for row in rows] for name, rows in of_variants.items()}
        values = {(name, "mean"): float(np.mean(of_prompts)) for name, of_prompts in of_scores.items()}
        values |= {(name, "spread"): float(np.std(of_prompts, ddof=1)) for name, of_prompts in of_scores.items()}
        each_task.append(values | {(name, "agreement"): mean for name, mean in agreements(of_variants).items()})
    return [
        {"variant": name, "statistic": statistic, "value": np.mean([of[name, statistic] for of in each_task])}
        for name, statistic in each_task[0]
    ]


def agreements(of_variants: Mapping[str, Floats]) -> dict[str, float]:
    """Return variant -> mean correlation between two of its prompts, and "HS-RW" across the two variants."""
    means = {}
    for name, rows in of_variants.items():
        means[name] = float(spearman(rows, rows)[~np.eye(len(rows), dtype=bool)].mean())
    return means | {"HS-RW": float(spearman(of_variants["HS"], of_variants["RW"]).mean())}


def spearman(first: Floats, second: Floats) -> Floats:
    """Return [K, M] Spearman correlations of rows [K, n] with rows [M, n]."""
    correlations = np.corrcoef(rankdata(first, axis=1), rankdata(second, axis=1))
    between: Floats = correlations[: len(first), len(first) :]
    return between


def correlations(of_tasks: list[OfTask], prompts: list[str]) -> list[Config]:
    """Return a row per two prompts of HS and RW: correlation of the pairs' similarities, mean over tasks."""
    names = [f"{variant} {prompt}" for variant in HS_AND_RW for prompt in prompts]
    whole = [np.concatenate([of_variants[variant] for variant in HS_AND_RW]) for of_variants in of_tasks]
    matrix = np.mean([spearman(rows, rows) for rows in whole], axis=0)
    return [{"one": a, "other": b, "rho": matrix[i, j]} for i, a in enumerate(names) for j, b in enumerate(names)]


def _maps(maps: pd.DataFrame, over: str) -> Drawing:
    """Draw the correlations between all prompts of HS and RW, a panel per encoder, as MoEE's figure 4."""
    drawn = heat_panels(maps, ("one", "other", "rho"), ("", ""), "Spearman correlation")
    caption = f"Spearman correlation of the pairs' similarities under two prompts, HS and RW, {over}."
    return Drawing("prompts_agreement", "Agreement between prompts", caption, drawn)
