"""Counts of each task's texts among those that an encoder was trained on, taken while mteb embeds them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpora.overlap import OverlapCount, place
from evaluation.candidates import Candidate
from evaluation.results import parts
from records.lineage import texts_read

SHOWN = 5  # tasks that a warning names
Counts = dict[str, int]


@dataclass(frozen=True)
class Overlap:
    """The training texts of one encoder. read: sha256 of the data that it was trained on. lacking: why they cannot be
    looked into; "" where they can, and where there are none."""

    read: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    lacking: str = ""

    @contextmanager
    def counting(self, task: Any, adapter: Any) -> Iterator[Counts]:
        """Yield a dictionary that holds the counts of `task` when the block, in which `adapter` embeds it, has ended.

        It stays empty where there is nothing to look into, and for an aggregate, whose parts have the texts.
        """
        counts: Counts = {}
        if not self.files or parts(task):
            yield counts
            return
        counted = OverlapCount(self.files)
        adapter.seen = counted.see
        try:
            yield counts
        finally:
            adapter.seen = None
        counts |= counted.counts()


def overlap_of(candidate: Candidate, cache_dir: Path | None) -> Overlap:
    """Return where the training texts of a candidate lie. cache_dir: None looks for none."""
    if cache_dir is None:
        return Overlap()
    cache_dir = cache_dir.expanduser()
    read = texts_read(candidate.manifest, candidate.trained)
    of_run = candidate.manifest["config"].get("cache_dir", cache_dir)
    files, missing = [], 0
    for sha256 in read:
        there = [file for file in (place(sha256, cache_dir), place(sha256, of_run)) if sha256 and file.exists()]
        files += there[:1]
        missing += not there
    if missing:
        mend = "give the train.py command of the run, and of those it starts from, again: they write it"
        return Overlap(read, lacking=f"{cache_dir} holds no digests of these training texts; {mend}")
    return Overlap(read, files)


def share(counts: Counts) -> float:
    """Return the share of a task's texts that stand in the training texts."""
    return counts["exact"] / max(1, counts["texts"])


def overlap_notes(scored: Sequence[tuple[str, dict[str, Counts], str]], largest: float | None) -> Iterator[str]:
    """Name the tasks of which more than the share `largest` of the texts was trained on, and what was not counted.

    scored: title, counts by task, and why some are not there, of each encoder.
    """
    warned, unmeasured = defaultdict(list), defaultdict(list)
    for title, overlap, reason in scored:
        over = {task: n for task, n in overlap.items() if largest is not None and share(n) > largest}
        if over:
            order = sorted(over, key=lambda task: -share(over[task]))
            words = [f"{task} ({share(over[task]):.1%}: {described(over[task])})" for task in order[:SHOWN]]
            words += [f"{len(order) - SHOWN} more"] if len(order) > SHOWN else []
            warned[f"{len(over)} of {len(overlap)} tasks: {', '.join(words)}"].append(title)
        if reason:
            unmeasured[reason].append(title)
    for tasks, titles in warned.items():
        yield (
            f"Contamination: {listed(titles)} was trained on more than {largest:.1%} of the texts of {tasks}. "
            "Leave these tasks or those training texts out, or say so beside the scores."
        )
    for reason, titles in unmeasured.items():
        yield f"Not counted for {listed(titles)}, how many texts of some tasks were trained on: {reason}."


def described(counts: Counts) -> str:
    """Return `3 of 1,400`."""
    return f"{counts['exact']:,} of {counts['texts']:,}"


def listed(titles: Sequence[str]) -> str:
    """Return the first names and how many more there are."""
    more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
    return f"{', '.join(titles[:SHOWN])}{more}"
