"""`python evaluate.py key=value ...`: configuration in, scores on disk, a table on the screen."""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from cli.errors import UserError
from cli.limits import (
    Limit,
    check_dims,
    check_limits,
    real,
)
from cli.quiet import quieten
from encoders.limits import ENCODER, ENCODER_WORDS
from evaluation.candidates import Candidate, Config, candidates, configured
from evaluation.instructions import MODES, read_instructions
from evaluation.overlap import overlap_notes
from evaluation.readings import check_readings, read_by, share_starts
from evaluation.scoring import Options, Outcome, score

LIMITS = ENCODER | {
    "overlap": real(0, "not counted", largest=1),
    "threads": Limit(1, "one for each core"),
    **{f"benchmark.{key}": Limit(2) for key in ("documents", "candidates", "classes")},
    **{f"benchmark.{key}": Limit(1) for key in ("queries", "class_members", "train_per_class", "body_chars")},
    **{f"benchmark.{key}": Limit(1) for key in ("experiments", "bootstraps", "relatives", "summarized")},
}
WORDS = ENCODER_WORDS | {
    "instructions": (None, *MODES),
    "untrained": (None, "also", "only", True, False),
    "benchmark.kind": ("docs", "mteb"),
}
OF_OURS = ("run", "readings", "untrained", "instructions", "predictions")  # keys that foreign= knows nothing of


def check(cfg: Config) -> list[str]:
    """Refuse numbers and words that are not allowed, before anything is imported or read; return the readings."""
    check_limits(cfg, LIMITS, WORDS)
    check_dims("evaluation.dims", cfg["evaluation"]["dims"])
    idle = [key for key in OF_OURS if cfg["foreign"] and cfg[key]]
    if idle:
        raise UserError(f"foreign= does not go with {idle[0]}=. Leave one of them out.")
    return check_readings(cfg["readings"])


def check_words(words: Sequence[str]) -> None:
    """Refuse what `run` would refuse of words that name no runs: keys, values, benchmark, tasks and folders."""
    cfg = configured(["run=x", *words])
    check(cfg)
    if any(word.partition("=")[0] in ("benchmark", "tasks", "tasks_dir") for word in words):
        from evaluation.tasks.chosen import task_set

        task_set(cfg)


def check_encoder(cfg: Config) -> None:
    """Refuse settings of pooler and attention that their classes do not allow; this imports torch."""
    from encoders.attention.pattern import pattern_of
    from poolers.shared.registry import check_pooler, refuse_blind

    pattern_of(cfg["attn"])
    check_pooler(cfg["pooler"])
    refuse_blind(cfg["pooler"], cfg["attn"]["name"])


def run(cfg: Config) -> list[Outcome]:
    """Score all that `cfg` (conf/evaluate.yaml) asks for; return the outcomes, in order."""
    readings = check(cfg)
    if cfg["instructions"] is not None:
        cfg["evaluation"]["instructions"] = cfg["instructions"]
    encoders = [] if cfg["foreign"] else candidates(cfg)  # what is wrong shows before anything slow is imported
    encoders = read_by(encoders, readings) if readings else encoders
    import torch

    from evaluation.tasks.chosen import task_set

    quieten()
    check_encoder(cfg)
    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    tasks = task_set(cfg).tasks
    if cfg["foreign"]:
        from evaluation.foreign import score_foreign

        outcomes = [score_foreign(cfg, tasks)]
    else:
        outcomes = _score_all(encoders if readings else share_starts(encoders), tasks, cfg)
    print(f"\n{score_table(outcomes)}\n")
    uncontrolled = " allow=[manifest]" if cfg["foreign"] else ""
    for place in dict.fromkeys(outcome.folder.parents[2] for outcome in outcomes):
        print(f"Scores: {place / 'results'}. Compare them: python -m analysis scores={place}{uncontrolled}")
    over = overlap_notes([(o.title, o.overlap, o.unmeasured) for o in outcomes], cfg["overlap"])
    for note in (*over, *_uninstructed(encoders)):
        print(f"Note: {note}")
    return outcomes


def _score_all(encoders: list[Candidate], tasks: list[Any], cfg: Config) -> list[Outcome]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    print(f"{len(encoders)} encoders x {len(tasks)} tasks.", flush=True)
    counts = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    columns = "{task.description}", *counts, "{task.fields[texts]:,} texts"
    first = {candidate.checkpoint: i for i, candidate in reversed(list(enumerate(encoders)))}
    order = sorted(range(len(encoders)), key=lambda i: first[encoders[i].checkpoint])  # what shares a model, one by one
    cache_dir, done, outcomes = Path(cfg["cache_dir"]), count(), dict[int, Outcome]()
    with Progress(*columns, console=Console(stderr=True), disable=not cfg["progress"], transient=True) as bar:
        line = bar.add_task("", total=len(encoders) * len(tasks), texts=0)

        def on_texts(number: int) -> None:
            bar.update(line, texts=bar.tasks[0].fields["texts"] + number)

        for i in order:

            def on_task(name: str, title: str = encoders[i].title) -> None:
                bar.update(line, description=f"{title} {name}", completed=next(done))

            options = Options(
                read_instructions(encoders[i].manifest["config"]["evaluation"]["instructions"]),
                predictions=cfg["predictions"],
                cache_dir=cache_dir if cfg["embeddings"] else None,
                overlap=None if cfg["overlap"] is None else cache_dir,
            )
            outcomes[i] = score(encoders[i], tasks, options, on_task, on_texts)
            print(outcomes[i].cost, flush=True)
    return [outcomes[i] for i in range(len(encoders))]


def score_table(outcomes: Sequence[Outcome]) -> str:
    """Return the mean main score by type, each task counting once, and the mean over types."""
    import pandas as pd

    from evaluation.tasks.task_data import TYPES

    rows = [(number, kind, value) for number, o in enumerate(outcomes) for kind, value in o.scores.values()]
    scores = pd.DataFrame(rows, columns=["outcome", "type", "score"])
    means = scores.pivot_table("score", "outcome", "type")
    kinds = [*(kind for kind in TYPES if kind in means), *sorted(set(means) - set(TYPES))]
    counts = scores["type"].value_counts() // len(outcomes)
    table = means[kinds].assign(**{"mean of types": means.mean(axis=1)})
    table = table.set_axis([o.title for o in outcomes]).rename(columns={k: f"{k} ({counts[k]})" for k in kinds})
    return table.rename_axis(columns="mean main score").to_string(float_format="%.4f")


def _uninstructed(encoders: Sequence[Candidate]) -> Iterator[str]:
    """Say which runs are scored with instructions though they were trained without any."""
    for candidate in encoders:
        config, data = candidate.manifest["config"], candidate.manifest.get("data", {})
        learned = config.get("data", {}).get("instruction") or data.get("instructed", 1)  # a mix counts none
        if candidate.trained and config["evaluation"]["instructions"] != "none" and not learned:
            yield (
                f"{candidate.title} was trained without instructions and is scored with them. Give instructions=none, "
                "or train with data.instruction=..."
            )
