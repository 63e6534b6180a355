"""`python evaluate.py key=value ...`: configuration in, scores on disk, tables on the screen."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.candidates import Candidate, candidates
from evaluation.embedding_place import check_mode
from evaluation.instructions import read_instructions
from evaluation.quiet import quiet
from evaluation.rates import remember
from evaluation.readings import check_readings, read_by
from evaluation.words import hydra_words, manual
from records.config import composed, plain
from records.hydra_flags import job_config, own_flags
from records.limits import ENCODER, ENCODER_WORDS, Limit, check_limits
from records.remembered import remember_below

Config = dict[str, Any]
LIMITS = ENCODER | {
    "threads": Limit(1, "one for each core"),
    "benchmark.documents": Limit(2),
    "benchmark.queries": Limit(1),
    "benchmark.candidates": Limit(2),
    "benchmark.classes": Limit(2),
    "benchmark.class_members": Limit(1),
    "benchmark.train_per_class": Limit(1),
    "benchmark.body_chars": Limit(1),
    "benchmark.experiments": Limit(1),
    "benchmark.bootstraps": Limit(1),
}


def main(arguments: Sequence[str]) -> None:
    """Read the command line, score, print. Raises `UserError` for what the user can mend."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars inside mteb would tear ours; tqdm reads it when first imported
    if {"-h", "--help"} & set(arguments):
        print(manual())
        return
    flags = own_flags("evaluate.py", arguments)
    cfg = composed("evaluate", hydra_words(flags.overrides))
    if flags.cfg:
        print(job_config(cfg, flags), end="")
        return
    run(plain(cfg))


def run(cfg: Config) -> list[Any]:
    """Score all that `cfg` (conf/evaluate.yaml) asks for; return the outcomes, in order."""
    if cfg["instructions"] is not None:
        cfg["evaluation"]["instructions"] = cfg["instructions"]
    remember_below(cfg["cache_dir"])
    read_instructions(cfg["evaluation"]["instructions"])
    check_limits(cfg, LIMITS, ENCODER_WORDS)
    readings = check_readings(cfg["readings"])
    found = candidates(cfg)  # what is wrong in the command shows before anything slow is imported
    found = read_by(found, readings) if readings else found
    check_mode(cfg["embeddings"])
    from evaluation.benchmarks import task_set
    from evaluation.plan import make_plan

    _limit_threads(cfg["threads"])
    tasks = task_set(cfg)
    with quiet():
        plan = make_plan(found, tasks, cfg)
    print(plan.text, flush=True)
    _name_uninstructed(found)
    if cfg["plan"]:
        return []
    from evaluation.report import report, task_notes

    outcomes = _score_all(found, tasks.tasks, cfg, plan)
    print(f"\n{report(outcomes)}\n")
    for place in dict.fromkeys(str(candidate.results) for candidate in found):
        print(f"Scores: {Path(place) / 'results'}. Compare them: python -m analysis scores={place}")
    _name_older_scores(outcomes)
    _name_unpredicted(outcomes)
    for note in task_notes(tasks.tasks):
        print(f"Note: {note}")
    return outcomes


def _score_all(found: list[Candidate], tasks: list[Any], cfg: Config, plan: Any) -> list[Any]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from evaluation.scoring import Options, score

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[texts]:,} texts"),
        console=Console(stderr=True),
        disable=not cfg["progress"],
        transient=True,
    )
    outcomes = []
    position = {task.metadata.name: n for n, task in enumerate(tasks)}
    with bar:
        line = bar.add_task("", total=len(found) * len(tasks), texts=0)
        for i, candidate in enumerate(found):
            texts = [0]

            def on_texts(count: int, texts: list[int] = texts) -> None:
                texts[0] += count
                bar.update(line, texts=texts[0])

            def on_task(name: str, candidate: Candidate = candidate, before: int = i * len(tasks)) -> None:
                bar.update(line, description=f"{candidate.title} {name}", completed=before + position[name])

            mode = candidate.manifest["config"]["evaluation"]["instructions"]
            options = Options(read_instructions(mode), cfg["predictions"], plan.place.cache_dir, plan.tokens[i])
            outcomes.append(score(candidate, tasks, options, on_task, on_texts))
            spent = outcomes[-1]
            remember(Path(cfg["cache_dir"]), candidate.manifest["config"], cfg["threads"], spent.tokens, spent.encoding)
            bar.update(line, completed=(i + 1) * len(tasks))
            print(f"{candidate.title}: {outcomes[-1].computed} new scores in {outcomes[-1].seconds:.0f} s", flush=True)
    return outcomes


def _limit_threads(threads: int | None) -> None:
    if threads is None:
        return
    import torch

    torch.set_num_threads(threads)


def _name_uninstructed(found: Sequence[Candidate]) -> None:
    """Say which runs are scored with instructions though they were trained without any."""
    names = []
    for candidate in found:
        config = candidate.manifest["config"]
        data = candidate.manifest.get("data", {})
        learned = config.get("data", {}).get("instruction") or data.get("instructed", 1)  # older runs did not count
        if candidate.trained and config["evaluation"]["instructions"] != "none" and not learned:
            names.append(candidate.title)
    if names:
        print(
            f"Note: {', '.join(names)}: trained without instructions and scored with them (divergence 21 of "
            "docs/reference_divergences.md). Give instructions=none, or train with data.instruction=...",
            flush=True,
        )


def _name_older_scores(outcomes: Sequence[Any]) -> None:
    """Scores of the same seed under other weights or settings stay; say so, since analysis asks which count."""
    for outcome in outcomes:
        seed = outcome.folder.name.split("@")[0]
        older = [p.name for p in outcome.folder.parent.glob(f"{seed}@*") if p.is_dir() and p != outcome.folder]
        if older:
            print(f"Note: {outcome.folder.parent} also holds {', '.join(sorted(older))}; delete what no longer counts.")


def _name_unpredicted(outcomes: Sequence[Any]) -> None:
    """A score that is there is not made again, so it gets no predictions; say what to do."""
    for outcome in outcomes:
        if outcome.unpredicted:
            print(
                f"Note: {outcome.title} was scored before without predictions on {', '.join(outcome.unpredicted)};"
                " for them give results=<another folder>, or delete these scores and run the command again."
            )
