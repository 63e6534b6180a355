"""The examples that are held out of training, and those that share a text with one of them."""

import hashlib
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pytorch_lightning.utilities import rank_zero_only

from cli.errors import UserError
from corpora.mix import by_source, shares, sources
from corpora.triples import Triple

Config = dict[str, Any]
Texts = Mapping[str, set[str]]  # text -> the sources that it is of
LONG = 5  # words of a held-out text that is looked for inside others
MANY = 10  # queries of one positive that is no answer of its own


def split(examples: list[Triple], data: Config) -> tuple[list[Triple], list[Triple]]:
    """Return (training, held out): every k-th example is kept out, so that all sources are among them; of a mix as many
    of each source as that says, and sources of share 0 are not trained on. What shares a text with one that is held
    out is not trained on either (`apart`). Raises `UserError` for too many of them."""
    every, wanted, unused = list(range(len(examples))), {}, set()
    if "mix" not in data:
        wanted = {"data": (data["validation"], every)}
    else:
        configs, members, share = sources(data), by_source(examples), shares(data)
        wanted = {f"data.sources.{name}": (configs[name]["validation"], members[name]) for name in configs}
        unused = {i for name in configs for i in members[name] if not share[name]}
    held_out: set[int] = set()
    for key, (count, numbers) in wanted.items():
        if not 0 < count < len(numbers) / 2 and not (count == 0 and "mix" in data):
            raise UserError(
                f"{key}.validation={count} does not fit {len(numbers)} examples: fewer than half can be kept out of "
                f"training. Give at most {(len(numbers) - 1) // 2}, or more data."
            )
        stride = len(numbers) // max(1, count)
        held_out |= {numbers[k] for k in range(0, stride * count, stride)}
    left_out = held_out | unused
    kept, out = [examples[i] for i in every if i not in left_out], [examples[i] for i in sorted(held_out)]
    return apart(kept, out, "mix" in data), out


def apart(kept: list[Triple], held_out: Sequence[Triple], mix: bool) -> list[Triple]:
    """Return the examples of `kept` whose query and positive are none of the held-out examples' texts and, of another
    source of a mix, hold none of those of `LONG` words or more. Case and number of blanks do not count.

    A positive of `MANY` other queries is taken for the name of a label: others with it stay. Prints how many are left
    out. Raises `UserError` where none of a source stays.
    """
    texts: dict[str, set[str]] = defaultdict(set)
    for t in held_out:
        for text in _sides(t):
            texts[text].add(t.origin)
    labels = _label_names(kept, texts)
    for name in labels:
        del texts[name]
    long = _by_longest_word(texts) if mix else {}
    left: list[int] = []
    for name, numbers in (by_source(kept) if mix else {"": range(len(kept))}).items():
        own = [i for i in numbers if not _shares_a_text(kept[i], texts, long)]
        if not own:
            of = f"data.sources.{name}" if mix else "data"
            raise UserError(f"All examples of {of} share a text with a held-out one. Lower {of}.validation.")
        left += own
    if len(left) < len(kept) or labels:
        stay = f"; {len(labels):,} positives of {MANY} queries or more stay" if labels else ""
        message = f"{len(kept) - len(left):,} examples share a text with held-out ones: not trained on{stay}."
        rank_zero_only(print)(message, file=sys.stderr)
    return [kept[i] for i in sorted(left)]


def _label_names(kept: Sequence[Triple], texts: Texts) -> list[str]:
    """Return those of `texts` that are the positive of `MANY` queries or more: names of labels."""
    queries_of: dict[str, set[str]] = defaultdict(set)
    for query, positive in (_sides(t) for t in kept if t.kind != "graded"):
        if positive in texts:
            queries_of[positive].add(query)
    return [positive for positive, queries in queries_of.items() if len(queries) >= MANY]


def _by_longest_word(texts: Texts) -> dict[str, list[str]]:
    """Return texts of `LONG` words or more by their longest inner word, which all that holds the text has too."""
    by_word: dict[str, list[str]] = defaultdict(list)
    for text in texts:
        if len(words := text.split()) >= LONG:
            by_word[max(words[1:-1], key=len)].append(text)
    return by_word


def _shares_a_text(t: Triple, texts: Texts, long: Mapping[str, Sequence[str]]) -> bool:
    """Whether a side of `t` is one of `texts`, or holds a long one that another source has."""
    for side in _sides(t):
        inside = (text for word in long.keys() & side.split() for text in long[word] if text in side)
        if side in texts or any(texts[text] - {t.origin} for text in inside):
            return True
    return False


def _sides(t: Triple) -> tuple[str, str]:
    """Query and positive as they are compared."""
    return " ".join(t.query.lower().split()), " ".join(t.positive.lower().split())


def of_percent(text: str, percent: int) -> bool:
    """Tell whether a text is of those that are held out: `percent` of all, by the text's own sha256."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100 < percent
