"""Knowledge of tokens of what comes after them: LLM2Vec's probe (arXiv 2404.05961, section 4), held-out docstrings."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from omegaconf import OmegaConf
from torch import Tensor
from torch.nn import functional as F

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE, MOST_DESIGNS
from analysis.grids.formats import interval, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from analysis.statistics.arrays import Floats
from analysis.statistics.intervals import student_interval
from cli.compose import CONF
from cli.errors import UserError
from cli.limits import Limit
from corpora.docstrings import read_docstrings
from encoders.attention.pattern import pattern_of
from encoders.encoder import Encoder
from encoders.text_encoder import TextEncoder
from encoders.tokens import Batch
from encoders.vector_geometry import anisotropy
from poolers.shared.base import INSTRUCTION, weighted_mean
from representation.encoders_studied import Studied, by_design, distinct_backbones, over_seeds, start_of
from representation.figures import look, not_drawn
from representation.probes.read_ahead_texts import Quadruple, batches, quadruples, shared_words, trios
from representation.question import each
from representation.texts import Texts

PLACE = 30
NAME = "read_ahead"
LIMITS = {"read_ahead.triples": Limit(8)}
LEAK = 1e-3  # a difference of causal states beyond all rounding
LEVEL = 0.95


class Measured(NamedTuple):
    """The states of A in n triples, layer by layer.

    gains [L, n]: cos(q, s+) - cos(q, s-). moved [L, n]: 1 - the mean of the two cosines, how far the states turn where
    another text follows. apart [L]: 1 - the mean cosine of q of different A, which is small in a narrow cone.
    """

    gains: Floats
    moved: Floats
    apart: Floats


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
    """Return cos(q, s+) - cos(q, s-) of the pooled states of A, by layer, for every backbone.

    Its texts are not the sample's: those of the benchmark have no two that begin alike. Raises `UserError` where a
    causal layer reads ahead, and where no text fits.
    """
    triples, backbones = held_out(settings), distinct_backbones(encoders)
    measurements = [measured(studied.encoder(), triples) for studied in each(backbones, NAME, settings)]
    values = [of.gains for of in measurements]
    checks = {studied.label: _checked(studied, of) for studied, of in zip(backbones, values, strict=True)}
    over = _made_of(triples, settings)
    frame = pd.DataFrame(
        {"encoder": studied.design, "seed": studied.seed, "layer": k + 1, **gain, "moved": turned, "apart": apart}
        for studied, of in zip(backbones, measurements, strict=True)
        for k, (gain, turned, apart) in enumerate(
            zip(gains_of([of.gains]).to_dict("records"), of.moved.mean(axis=1), of.apart, strict=True)
        )
    )
    return Answer(
        NAME,
        "Reading ahead",
        [read_ahead_grid(backbones, measurements, over)],
        lambda: [read_ahead_drawing(backbones, values, over)],
        {NAME: frame},
        [_overlap(triples), *_check_notes(checks), *over_seeds(backbones)],
    )


def held_out(settings: dict[str, Any]) -> list[Quadruple]:
    """Quadruples of the docstrings that are held out of all training (conf/data/docstrings.yaml).

    Raises `UserError` where one of these packages is not installed.
    """
    packages = list(OmegaConf.load(CONF / "data" / "docstrings.yaml").held_out)
    docstrings = read_docstrings(packages, settings["cache_dir"])
    return quadruples(docstrings, settings[NAME]["triples"], settings["texts_seed"])


def measured(encoder: TextEncoder, triples: Sequence[Quadruple]) -> Measured:
    """Measure every layer for each quadruple that fits into max_length.

    Raises `UserError` where fewer than two do.
    """
    fitting = trios(triples, encoder.tokenizer)
    if len(fitting) < 2:
        raise UserError(
            f"max_length={encoder.max_length} leaves room for {len(fitting)} of {len(triples)} texts of read_ahead. "
            "Leave the question out: questions=[...]."
        )
    model = encoder.encoder.eval()
    shape = model.pooler.num_layers, len(fitting)
    values, turned, openings = np.empty(shape), np.empty(shape), np.empty((*shape, model.pooler.hidden_size))
    for chunk, three in batches(fitting, encoder.tokenizer, encoder.token_budget):
        with torch.inference_mode():
            q, plus, minus = (pooled_openings(model, batch.to(encoder.device)) for batch in three)
        values[:, chunk], turned[:, chunk], openings[:, chunk] = gains(q, plus, minus), moved(q, plus, minus), q.cpu()
    return Measured(values, turned, np.array([1 - anisotropy(of_layer) for of_layer in openings]))


def causal_layers(attn: dict[str, Any], count: int) -> int:
    """Return how many of `count` layers, from the first, cannot read ahead under the configuration's `attn`."""
    keys = torch.arange(64)  # tokens: more than an opening has
    queries = keys[:, None]
    ahead = [bool((sees(queries, keys) & (keys > queries)).any()) for sees in pattern_of(attn).of_layers(count)]
    return [*ahead, True].index(True)


def pooled_openings(encoder: Encoder, batch: Batch) -> Tensor:
    """Return [L, B, D] float32: the mean over A's tokens (role INSTRUCTION) of each layer's states, the last normed."""
    weights = (batch.roles == INSTRUCTION).float()
    count = encoder.pooler.num_layers
    return torch.stack(encoder.each_layer(batch, range(count), lambda _, hidden: weighted_mean(hidden, weights)))


def gains(q: Tensor, plus: Tensor, minus: Tensor) -> Floats:
    """Return [...] of vectors [..., D]: cos(q, s+) - cos(q, s-). Exactly zero where s+ and s- are the same."""
    near, far = _cosines(q, plus), _cosines(q, minus)
    return near - far


def moved(q: Tensor, plus: Tensor, minus: Tensor) -> Floats:
    """Return [...] of vectors [..., D]: 1 - (cos(q, s+) + cos(q, s-)) / 2."""
    return 1 - (_cosines(q, plus) + _cosines(q, minus)) / 2


def _cosines(first: Tensor, second: Tensor) -> Floats:
    one, other = F.normalize(first.double(), dim=-1), F.normalize(second.double(), dim=-1)
    result: Floats = (one * other).sum(dim=-1).cpu().numpy()
    return result


def _checked(studied: Studied, values: Floats) -> tuple[int, float]:
    """Count the layers, from the first, that cannot read ahead, and the largest difference there, which must be zero.

    Raises `UserError` where it is more than rounding.
    """
    blind = causal_layers(studied.config["attn"], len(values))
    most = float(np.abs(values[:blind]).max(initial=0.0))
    if most > LEAK:
        raise UserError(
            f"{studied.label}: a causal layer knows what follows (the difference of cosines is {most:.2g}, not 0). "
            "Its attention mask does not hold; do not use this run."
        )
    return blind, most


def _check_notes(checks: dict[str, tuple[int, float]]) -> list[str]:
    causal = {label: check for label, check in checks.items() if check[0]}
    if not causal:
        return []
    most = max(difference for _, difference in causal.values())
    zero = "exactly 0 for every triple" if most == 0 else f"0 but for rounding (at most {most:.1g})"
    layers = "; ".join(f"{label} ({blind})" for label, (blind, _) in causal.items())
    return [f"Check: the difference is {zero} in the causal layers, which cannot read ahead (their number): {layers}."]


def _made_of(triples: Sequence[Quadruple], settings: dict[str, Any]) -> str:
    return (
        f"over {len(triples)} triples (seed {settings['texts_seed']}) of docstrings of the held-out packages: A is the "
        "one-sentence summary of a docstring, B that of a docstring of another package, C the beginning of the "
        "description under B, D the beginning of a description in a third package. q = (A, B), s+ = (A, C), "
        "s- = (A, D); B, C and D have as many tokens, and only the states of A's tokens are averaged"
    )


def _overlap(triples: Sequence[Quadruple]) -> str:
    alike = np.mean([shared_words(t.b, t.c) for t in triples])
    unlike = np.mean([shared_words(t.b, t.d) for t in triples])
    return f"Like and unlike: B shares {alike:.0%} of its words with C and {unlike:.0%} with D (Jaccard's index)."


def gains_of(seeds: Sequence[Floats]) -> pd.DataFrame:
    """Return one row per layer of the differences [L, n] of n triples, at least two, of one array per seed.

    mean, low, high: over triples, each averaged over seeds, with Student's interval; share: of triples and seeds above
    zero, those at zero by half; count: of triples.
    """
    every = np.stack(seeds)
    triples = every.mean(axis=0)
    low, high = student_interval(triples, LEVEL)
    share = (every > 0).mean(axis=(0, 2)) + (every == 0).mean(axis=(0, 2)) / 2
    mean, count = triples.mean(axis=1), triples.shape[1]
    return pd.DataFrame({"mean": mean, "low": low, "high": high, "share": share, "count": count})


def gains_by_design(encoders: Sequence[Studied], values: Sequence[Floats]) -> dict[str, pd.DataFrame]:
    """Return design -> `gains_of` its seeds."""
    designs = by_design(encoders)
    return {name: gains_of([values[encoders.index(s)] for s in seeds]) for name, seeds in designs.items()}


def learnt(design: str, encoders: Sequence[Studied], values: Sequence[Floats]) -> tuple[float, float, float] | None:
    """Return the last layer of a design's runs minus that of their starts: mean and interval over triples, paired.

    None for a start, and where a run's start is not among the encoders.
    """
    runs = [run for run in by_design(encoders)[design] if run.trained]
    pairs = [(run, start) for run in runs if (start := start_of(run, encoders))]
    if not pairs:
        return None
    (row,) = gains_of([values[encoders.index(a)][-1:] - values[encoders.index(b)][-1:] for a, b in pairs]).itertuples()
    return row.mean, row.low, row.high


def read_ahead_grid(encoders: Sequence[Studied], measurements: Sequence[Measured], over: str) -> Grid:
    """Return the last layer of each design: the difference, and the two distances that bound its size."""
    rows, values, of_design = [], [of.gains for of in measurements], by_design(encoders)
    for label, layers in gains_by_design(encoders, values).items():
        last, change = layers.iloc[-1], learnt(label, encoders, values)
        more = f"{signed(change[0])} {interval(*change[1:])}" if change else "-"
        seeds = [measurements[encoders.index(studied)] for studied in of_design[label]]
        apart, turned = (float(np.mean(x)) for x in ([s.apart[-1] for s in seeds], [s.moved[-1] for s in seeds]))
        sizes = [score(apart), score(turned), signed(last["mean"] / turned) if turned else "-"]
        cells = [signed(last["mean"]), interval(last["low"], last["high"]), score(last["share"], 3), more, *sizes]
        rows.append([Cell(text) for text in (label, *cells, f"{last['count']:.0f}")])
    header = ["Encoder", "Difference", f"{LEVEL:.0%} interval", "q nearer s+", "By training"]
    header += ["Apart", "Moved", "Of what moved", "Triples"]
    caption = (
        f"cos(q, s+) - cos(q, s-) of the last layer, after the final norm, {over}. Interval: Student's t over triples. "
        "q nearer s+: share of triples, .5 by chance. By training: less that of the run's own start, triple by triple. "
        "Apart: 1 - mean cosine of different A, the room that cosines have; moved: 1 - mean of both cosines, how far "
        "A's states turn where another text follows; of what moved: difference / moved. The difference is apart x "
        "(moved / apart) x of what moved: isotropy, how much later tokens weigh, and how much of it is their meaning."
    )
    return Grid("read_ahead", caption, header, rows, title="Reading ahead: last layer")


def read_ahead_drawing(encoders: Sequence[Studied], values: Sequence[Floats], over: str) -> Drawing:
    """Draw every layer of each design, at most twelve; those that are exactly zero are named in the caption."""
    designs, trained = gains_by_design(encoders, values), {s.design: s.trained for s in encoders}
    seeing = {label: layers for label, layers in designs.items() if layers["mean"].any()}
    blind = [label for label in designs if label not in seeing]
    caption = (
        f"cos(q, s+) - cos(q, s-) layer by layer, mean and {LEVEL:.0%} interval {over}. Broken lines: untrained. "
        "Above zero a token's state knows what comes after it."
    )
    if seeing and blind:
        caption += f" Exactly zero in every layer, so not drawn: {'; '.join(blind)}."
    lines = seeing or designs
    shown = dict(list(lines.items())[:MOST_DESIGNS])
    names = short_names(shown)
    figure = canvas(4.2 + inches(names.values()) + 0.5, max(2.8, 0.6 + LINE * len(shown)))
    axes = figure.add_subplot()
    for k, (label, layers) in enumerate(shown.items()):
        numbers, style = layers.index + 1, look(k, 4) | {"linestyle": "-" if trained[label] else "--"}
        axes.fill_between(numbers, layers["low"], layers["high"], color=style["color"], alpha=0.15, linewidth=0)
        axes.plot(numbers, layers["mean"], label=names[label], **style)
    axes.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("layer")
    axes.set_ylabel("cos(q, s+) \N{MINUS SIGN} cos(q, s\N{MINUS SIGN})")
    axes.grid(axis="y")
    figure.legend(loc="outside right center")
    ends = "; ".join(f"{label} {signed(layers['mean'].iloc[-1])}" for label, layers in designs.items())
    alt = f"Differences at the last layer: {ends}."
    return Drawing("read_ahead", "Reading ahead by layer", caption + not_drawn(lines, MOST_DESIGNS), alt, figure)
