"""Training texts among the texts of tasks: where they lie for an encoder, and what is said of the counts."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from corpora.overlap import place
from evaluation.candidates import Candidate
from records.lineage import texts_read

SHOWN = 5  # tasks or encoders that a note names
Counts = dict[str, int]


def training_files(candidate: Candidate, cache_dir: Path) -> tuple[list[Path], str]:
    """Return the files of digests of the texts that an encoder was trained on, and the sha256 of data without one."""
    files: list[Path] = []
    folders = cache_dir, candidate.manifest["config"].get("cache_dir", cache_dir)
    for sha256 in texts_read(candidate.manifest, candidate.trained):
        there = [place(sha256, folder) for folder in folders if sha256 and place(sha256, folder).exists()]
        if not there:
            return [], sha256 or "unknown"
        files.append(there[0])
    return files, ""


def overlap_notes(scored: Sequence[tuple[str, dict[str, Counts], str]], largest: float | None) -> Iterator[str]:
    """Name the tasks of which more than the share `largest` of the texts was trained on, and what was not counted.

    scored: title, counts by task, and what is lacking, of each encoder.
    """
    if largest is None:
        return
    for title, overlap, _ in scored:
        shares = {task: counts["exact"] / max(1, counts["texts"]) for task, counts in overlap.items()}
        over = sorted((task for task in shares if shares[task] > largest), key=lambda task: -shares[task])
        if over:
            named = _listed([f"{task} ({shares[task]:.1%})" for task in over])
            yield (
                f"Contamination: {title} was trained on more than {largest:.1%} of the texts of {len(over)} of "
                f"{len(overlap)} tasks: {named}. Leave these tasks or those training texts out, or say so beside the "
                "scores."
            )
    if lacking := [title for title, _, reason in scored if reason]:
        yield (
            f"Not counted for {_listed(lacking)}, how many texts of the tasks were trained on: cache_dir does not hold "
            "the training texts. Give the train.py command again: it writes them."
        )


def _listed(names: Sequence[str]) -> str:
    """Return the first names and how many more there are."""
    return ", ".join(names[:SHOWN]) + f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)
