"""Word-level tasks of LLM2Vec (arXiv 2404.05961, section 3.1): a linear probe on frozen states of words."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.formats import Unit
from analysis.render import Format, Section, Table
from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.intervals import student_interval
from cli.errors import UserError
from cli.limits import Limit
from encoders.text_encoder import TextEncoder
from encoders.tokens import Batch, Tokens
from poolers.shared.base import TEXT
from representation.encoders_studied import Studied, by_design, distinct_backbones
from representation.sections import each
from representation.texts import Arrays, Texts
from representation.word_labels import LabelledText, code_examples, drawn, read_conll

PLACE = 35
NAME = "word_level"
LIMITS = {"word_level.texts": Limit(20), "word_level.column": Limit(-1)}
OWN, BEFORE = "own", "before"
STEPS = 2000  # of the probe's solver, at most


def section(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Section | None:
    """Return the accuracy of a probe on the words of held-out texts, for each backbone and both states of a word.

    Its texts are not the sample's, since words need labels. Raises `UserError` for a file that is none of columns, and
    where too few words fit into max_length.
    """
    keys, backbones = settings[NAME], distinct_backbones(encoders)
    packages = [keys["packages"]] if isinstance(keys["packages"], str) else keys["packages"]
    every = read_conll(Path(keys["conll"]), keys["column"]) if keys["conll"] else list(code_examples(packages))
    labelled = drawn(every, keys["texts"], settings["texts_seed"])
    words = Words(labelled)
    right: dict[tuple[str, int, str], Floats] = {}
    for studied in each(backbones, NAME, settings):
        for which, states in word_states(studied.encoder(), labelled).items():
            right[studied.design, studied.seed, which] = words.probed(states)
    rows = [(*key, np.nanmean(values), np.isfinite(values).sum()) for key, values in right.items()]
    frame = pd.DataFrame(rows, columns=["encoder", "seed", "states", "accuracy", "words"])
    baselines = {"most frequent label": words.majority, "that of the word's form": words.of_forms}
    scores = [f"{name} {Unit().score(values[words.tested].mean())}" for name, values in baselines.items()]
    source = keys["conll"] or f"examples of {', '.join(packages)}, labelled by Python's own grammar"
    caption = (
        f"Accuracy on the words of {words.half} held-out texts of a logistic regression trained on {words.half} "
        "others. Difference: from the first row, with Student's 95 % interval over texts."
    )
    notes = [
        f"Texts: {source}. Labels: {words.kinds}. For comparison: {'; '.join(scores)}.",
        "States of the last layer, mean over a word's tokens: own, or of the position before each of them, which "
        "LLM2Vec takes after MNTP (by rule).",
    ]
    pairs = _accuracies(backbones, words, right)
    formats: dict[str, Format] = {"accuracy": Unit().score, **dict.fromkeys(pairs.columns[4:], Unit().signed)}
    shown = Table(NAME, "Labels of words by a linear probe", caption, pairs, formats, left=3)
    return Section(NAME, "Labels of words", [shown], frames={NAME: frame}, notes=notes)


def _accuracies(
    backbones: Sequence[Studied], words: "Words", right: dict[tuple[str, int, str], Floats]
) -> pd.DataFrame:
    """Return a row per design and states: accuracy over seeds, and its difference from the first row, text by text."""
    rows, first = [], None
    for design, seeds in by_design(backbones).items():
        for which in (OWN, BEFORE):
            values = np.mean([right[design, studied.seed, which] for studied in seeds], axis=0)
            first = values if first is None else first
            of_texts = words.by_text(values - first)
            (low,), (high,) = student_interval(of_texts[None])
            read = "yes" if by_rule(seeds[0]) == which else ""
            rows.append((design, which, read, np.nanmean(values), of_texts.mean(), low, high))
    return pd.DataFrame(rows, columns=["encoder", "states", "read by LLM2Vec", "accuracy", "difference", "low", "high"])


def by_rule(studied: Studied) -> str:
    """Return the state that LLM2Vec reads: of the position before, where MNTP taught it to hold the next token."""
    objectives = [stage["objective"] for stage in studied.stages]
    objectives += [studied.config.get("objective", {}).get("name", "")] if studied.trained else []
    return BEFORE if "mntp" in objectives else OWN


def word_states(encoder: TextEncoder, labelled: Sequence[LabelledText]) -> Arrays:
    """Return own and before, each [W, D] float32 over all words; nan for a word that is not read whole.

    own: mean of the last layer's states over the tokens that overlap the word; before: over the positions before each
    of them, which LLM2Vec takes for what MNTP trained. A word whose first token has no position before it counts in
    neither, so that both have the same words.
    """
    rows = encoder.tokenizer([text.text for text in labelled])
    weights = [_members(encoder, row, text) for row, text in zip(rows, labelled, strict=True)]
    sizes = np.cumsum([0, *(len(text.words) for text in labelled)])
    states: Arrays = {}

    def compute(batch: Batch) -> tuple[NDArray[np.float32], Bools]:
        return encoder.encoder.run_backbone(batch).float().cpu().numpy(), batch.view.real.cpu().numpy()

    for chunk, (hidden, real) in encoder.run([text.text for text in labelled], "", compute):
        for i, of_text, at in zip(chunk, hidden, real, strict=True):
            read = of_text[at]  # [T, D] in order, on whichever side the padding is
            for name, members in zip((OWN, BEFORE), (weights[i], np.roll(weights[i], -1, axis=1)), strict=True):
                kept = states.setdefault(name, np.full((sizes[-1], read.shape[1]), np.nan, dtype=np.float32))
                kept[sizes[i] : sizes[i + 1]] = members @ read
    return states


def _members(encoder: TextEncoder, row: Tokens, text: LabelledText) -> NDArray[np.float32]:
    """Return [words, T] the share of each token of a row in each word's mean; nan for a word that is not read whole."""
    plain = encoder.tokenizer.tokenizer(
        text.text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
    )
    places = np.flatnonzero(np.array(row.roles) == TEXT)
    if [row.ids[k] for k in places] != plain["input_ids"][: len(places)]:
        raise UserError("word_level reads texts as they stand. Leave it out for this template: tables=[...].")
    weights = np.zeros((len(text.words), len(row)), dtype=np.float32)
    offsets = np.array(plain["offset_mapping"])
    for word, (start, end) in enumerate(text.words):
        of_word = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > start))
        whole = len(of_word) and of_word[-1] < len(places) and places[of_word[0]] > 0
        weights[word, places[of_word] if whole else 0] = 1 / len(of_word) if whole else np.nan
    return weights


class Words:
    """The words of all texts, the first half of which train the probe."""

    def __init__(self, labelled: Sequence[LabelledText]) -> None:
        self.half = len(labelled) // 2
        self.labels = np.array([label for text in labelled for label in text.labels])
        self.text = np.repeat(np.arange(len(labelled)), [len(text.words) for text in labelled])
        self.tested = self.text >= self.half
        forms = np.array([form for text in labelled for form in text.forms])
        seen = pd.Series(self.labels[~self.tested]).groupby(forms[~self.tested])
        usual = seen.agg(lambda labels: labels.mode()[0])
        most = Counter(self.labels[~self.tested]).most_common(1)[0][0]
        self.majority = (self.labels == most).astype(np.float64)
        self.of_forms = (pd.Series(forms).map(usual).fillna(most) == self.labels).to_numpy(dtype=np.float64)
        self.kinds = ", ".join(sorted(set(self.labels)))

    def probed(self, states: NDArray[np.float32]) -> Floats:
        """Return [W]: 1 where the probe is right, 0 where not, nan for words of the training half or without a state.

        Logistic regression on standardised states, L2 with C = 1.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        read = np.isfinite(states[:, 0])
        train, test = np.flatnonzero(read & ~self.tested), np.flatnonzero(read & self.tested)
        if len(train) < 2 or len(test) < 2 or len(set(self.labels[train])) < 2:
            raise UserError("Too few words fit into max_length for word_level. Raise it, or word_level.texts.")
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=STEPS))
        probe.fit(states[train], self.labels[train])
        right = np.full(len(states), np.nan)
        right[test] = probe.predict(states[test]) == self.labels[test]
        return right

    def by_text(self, values: Floats) -> Floats:
        """Return [texts] the mean of `values` [W] over the words of each text that has one; nan has no value."""
        means: Floats = pd.Series(values).groupby(self.text).mean().dropna().to_numpy()
        return means
