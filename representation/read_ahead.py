"""Do tokens know what comes after them? LLM2Vec's probe (arXiv 2404.05961, section 4) on held-out docstrings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import OmegaConf

from analysis.formats import interval, score, signed
from analysis.tables.grid import Cell, Grid
from records.config import CONF
from records.errors import UserError
from records.limits import Limit
from representation.answer import Answer
from representation.backbones import by_design, distinct_backbones, over_seeds
from representation.layer_lines import Line, layer_lines
from representation.progress import each
from representation.read_ahead_gain import LEVEL, Gain, gains, gains_of, pooled_openings
from representation.read_ahead_texts import Quadruple, quadruples, shared_words
from representation.read_ahead_tokens import batches, trios
from representation.styled import Words

if TYPE_CHECKING:
    import pandas as pd

    from encoders.text_encoder import TextEncoder
    from representation.subject import Subject
    from representation.texts import Texts

NAME = "read_ahead"
LIMITS = {"read_ahead.triples": Limit(8)}
LEAK = 1e-3  # a difference of causal states beyond all rounding
Floats = NDArray[np.float64]


def answer(subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> Answer | None:
    """Return cos(q, s+) - cos(q, s-) of the pooled states of A, by layer, for every backbone.

    Its texts are its own: those of the benchmark have no two that begin alike. Raises `UserError` where a causal layer
    reads ahead, and where no text fits.
    """
    made = held_out(settings)
    own = distinct_backbones(subjects, with_attention=True)
    found: list[Floats] = []
    notes = []
    for subject in each(own, NAME, settings):
        found.append(measured(subject.encoder(), made))
        notes.append(_checked(subject, found[-1]))
    summary = {
        design: gains_of([found[own.index(subject)] for subject in seeds]) for design, seeds in by_design(own).items()
    }
    trained = {subject.design: subject.trained for subject in own}
    what = _made_of(made, settings)
    return Answer(
        NAME,
        "Reading ahead",
        [_grid(summary, what)],
        [_drawing(summary, trained, what)],
        {NAME: _frame(own, found)},
        [_overlap(made), *(note for note in notes if note), *over_seeds(own)],
    )


def held_out(settings: dict[str, Any]) -> list[Quadruple]:
    """Quadruples of the docstrings that are held out of all training (conf/data/docstrings.yaml).

    Raises `UserError` where one of these packages is not installed.
    """
    from corpora.docstrings import read_docstrings

    packages = list(OmegaConf.load(CONF / "data" / "docstrings.yaml").held_out)
    docstrings = read_docstrings(packages, settings["cache_dir"])
    return quadruples(docstrings, settings[NAME]["triples"], settings["texts_seed"])


def measured(encoder: "TextEncoder", made: Sequence[Quadruple]) -> Floats:
    """[L, n] of cos(q, s+) - cos(q, s-), layer by layer, for each quadruple that fits into max_length.

    Raises `UserError` where fewer than two do.
    """
    found = trios(made, encoder.tokenizer)
    if len(found) < 2:
        raise UserError(
            f"max_length={encoder.max_length} leaves room for {len(found)} of {len(made)} texts of read_ahead. "
            "Leave the question out: questions=[...]."
        )
    model = encoder.encoder.eval()
    values = np.empty((model.pooler.num_layers, len(found)))
    for chunk, three in batches(found, encoder.tokenizer, encoder.token_budget):
        with torch.inference_mode():
            q, plus, minus = (pooled_openings(model, batch.to(encoder.device)) for batch in three)
        values[:, chunk] = gains(q, plus, minus)
    return values


def causal_layers(attn: dict[str, Any], count: int) -> int:
    """How many of `count` layers, from the first, cannot read ahead under the configuration's `attn`."""
    return count - int(attn.get("layers", 0)) if attn["is_causal"] else 0


def _checked(subject: "Subject", values: Floats) -> str:
    """What the layers that cannot read ahead gave, in words. Raises `UserError` where it is not zero."""
    blind = causal_layers(subject.config["attn"], len(values))
    if not blind:
        return ""
    most = float(np.abs(values[:blind]).max())
    if most > LEAK:
        raise UserError(
            f"{subject.label}: a causal layer knows what follows (the difference of cosines is {most:.2g}, not 0). "
            "Its attention mask does not hold; do not use this run."
        )
    said = "is exactly 0 for every triple" if most == 0 else f"is 0 but for rounding (at most {most:.1g})"
    return f"Check: in the {blind} causal layers of {subject.label} the difference {said}."


def _made_of(made: Sequence[Quadruple], settings: dict[str, Any]) -> str:
    return (
        f"over {len(made)} triples (seed {settings['texts_seed']}) of docstrings of the held-out packages: A is the "
        "one-sentence summary of a docstring, B that of a docstring of another package, C the beginning of the "
        "description under B, D the beginning of a description in a third package. q = (A, B), s+ = (A, C), "
        "s- = (A, D); B, C and D have as many tokens, and only the states of A's tokens are averaged"
    )


def _overlap(made: Sequence[Quadruple]) -> str:
    alike, unlike = (np.mean([shared_words(t.b, other(t)) for t in made]) for other in (lambda t: t.c, lambda t: t.d))
    return f"Like and unlike: B shares {alike:.0%} of its words with C and {unlike:.0%} with D (Jaccard's index)."


def _grid(summary: dict[str, list[Gain]], what: str) -> Grid:
    rows = []
    for label, layers in summary.items():
        last = layers[-1]
        best = max(range(len(layers)), key=lambda i: layers[i].mean)
        top = f"{signed(layers[best].mean)} (layer {best + 1})" if layers[best].mean > 0 else "none above 0"
        cells = [signed(last.mean), interval(last.low, last.high), score(last.share, 3), top, str(last.count)]
        rows.append([Cell(label), *map(Cell, cells)])
    header = ["Encoder", "Difference", f"{LEVEL:.0%} interval", "q nearer s+", "Largest over layers", "Triples"]
    caption = (
        f"cos(q, s+) - cos(q, s-) of the last layer, after the final norm, {what}. Interval: Student's t over triples. "
        "q nearer s+: share of triples, .5 by chance."
    )
    return Grid(NAME, caption, header, rows, title="Reading ahead: last layer")


def _drawing(summary: dict[str, list[Gain]], trained: dict[str, bool], what: str) -> Any:
    ahead = {label: layers for label, layers in summary.items() if any(gain.mean for gain in layers)}
    blind = [label for label in summary if label not in ahead]
    lines = {label: _line(layers, trained[label]) for label, layers in (ahead or summary).items()}
    caption = (
        f"cos(q, s+) - cos(q, s-) layer by layer, mean and {LEVEL:.0%} interval {what}. Broken lines: untrained. "
        "Above zero a token's state knows what comes after it."
    )
    if ahead and blind:
        caption += f" Exactly zero in every layer, so not drawn: {', '.join(blind)}."
    ends = ", ".join(f"{label} {signed(layers[-1].mean)}" for label, layers in summary.items())
    words = Words(NAME, "Reading ahead by layer", caption, f"Differences at the last layer: {ends}.")
    return layer_lines(words, lines, "cos(q, s+) \N{MINUS SIGN} cos(q, s\N{MINUS SIGN})")


def _line(layers: list[Gain], trained: bool) -> Line:
    mean, low, high = (np.array([getattr(gain, key) for gain in layers]) for key in ("mean", "low", "high"))
    return Line(mean, low, high, trained)


def _frame(own: "list[Subject]", found: list[Floats]) -> "pd.DataFrame":
    import pandas as pd

    rows = [
        {"encoder": subject.design, "seed": subject.seed, "layer": i + 1, **vars(gain)}
        for subject, values in zip(own, found, strict=True)
        for i, gain in enumerate(gains_of([values]))
    ]
    return pd.DataFrame(rows)
