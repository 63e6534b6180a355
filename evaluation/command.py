"""`python evaluate.py key=value ...`: configuration in, scores on disk, a table on the screen."""

import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any

from cli.compose import is_bundled
from cli.errors import UserError, quieten
from cli.limits import Limit, check_dims, check_limits, real
from encoders.limits import ENCODER, ENCODER_WORDS
from evaluation.candidates import Candidate, Config, candidates, configured
from evaluation.instructions import MODES, read_instructions
from evaluation.results import model_folder
from evaluation.scoring import Options, Outcome, of_disk, score
from evaluation.variants import check_variants, read_by, share_states

LIMITS = ENCODER | {
    "overlap": real(0, "not counted", largest=1),
    "threads": Limit(1, "one for each core"),
    **{f"benchmark.{key}": Limit(2) for key in ("documents", "candidates", "classes")},
    **{f"benchmark.{key}": Limit(1) for key in ("queries", "class_members", "train_per_class", "body_chars")},
    **{f"benchmark.{key}": Limit(1) for key in ("experiments", "bootstraps", "relatives", "summarized")},
}
WORDS = ENCODER_WORDS | {
    "instructions": (None, *MODES),
    "untrained": (None, "also", "only"),
    "benchmark.kind": ("docs", "mteb"),
}
OF_TASKS = ("benchmark", "tasks", "tasks_dir")
OF_OURS = ("run", "variants", "untrained", "instructions", "predictions")  # keys that foreign= knows nothing of


class UnfinishedError(UserError):
    """Some scores failed, the others are there."""

    code = 1  # exit code


def check(cfg: Config) -> list[str]:
    """Refuse numbers and words that are not allowed, before anything is imported or read; return the variants."""
    check_limits(cfg, LIMITS, WORDS)
    check_dims("evaluation.dims", cfg["evaluation"]["dims"])
    idle = [key for key in OF_OURS if cfg["foreign"] and cfg[key]]
    if idle:
        raise UserError(f"foreign= does not go with {idle[0]}=. Leave one of them out.")
    return check_variants(cfg["variants"])


def check_words(words: Sequence[str], base: str) -> None:
    """Refuse what `run` would refuse of words for runs of a base, a model.path: keys, values, tasks and folders."""
    cfg = configured(["run=x", *words])
    check(cfg)
    if not is_bundled(base) or any(cfg.get(key) for key in OF_TASKS):
        _tasks(cfg, [base])


def _tasks(cfg: Config, bases: Sequence[str]) -> list[Any]:
    """Return the tasks that `cfg` names, else those for runs of `bases`, each a model.path. Raises `UserError`."""
    from evaluation.tasks.chosen import check_hub, task_set

    if not any(cfg.get(key) for key in OF_TASKS):
        name = "docstrings" if all(map(is_bundled, bases)) else "MTEB(eng, v2)"
        cfg["benchmark"] = configured([f"benchmark={name}"])["benchmark"]
    chosen = task_set(cfg)
    if not chosen.data:
        check_hub(chosen.tasks)
    return chosen.tasks


def run(cfg: Config, typed: Sequence[str] = ()) -> list[Outcome]:
    """Score all that `cfg` (conf/evaluate.yaml) asks for; return the outcomes, in order. typed: its words."""
    variants = check(cfg)
    if cfg["instructions"] is not None:
        cfg["evaluation"]["instructions"] = cfg["instructions"]
    encoders = [] if cfg["foreign"] else candidates(cfg, typed)  # what is wrong shows before anything slow is imported
    encoders = read_by(encoders, variants) if variants else encoders
    import torch

    quieten()
    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    tasks = _tasks(cfg, [candidate.manifest["config"]["model"]["path"] for candidate in encoders])
    if cfg["foreign"]:
        from evaluation.foreign import score_foreign

        outcomes = [score_foreign(cfg, tasks)]
    else:
        outcomes = _score_all(encoders if variants else share_states(encoders), tasks, cfg)
    print(f"\n{score_table(outcomes)}\n")
    uncontrolled = " allow=[manifest]" if cfg["foreign"] else ""
    for place in dict.fromkeys(outcome.folder.parents[2] for outcome in outcomes):
        print(f"Scores: {place / 'results'}. Compare them: python -m analysis {quote(f'scores={place}')}{uncontrolled}")
    for note in (*overlap_notes(outcomes, cfg["overlap"]), *_uninstructed(encoders)):
        print(f"Note: {note}")
    _refuse_failed(outcomes)
    return outcomes


def _refuse_failed(outcomes: Sequence[Outcome]) -> None:
    """List the scores that failed, by cause. Raises `UnfinishedError` where there are any."""
    causes: dict[str, list[str]] = {}
    for outcome in outcomes:
        for task, why in outcome.failed.items():
            causes.setdefault(f"{outcome.title}: {why}", []).append(task)
    for cause, tasks in causes.items():
        print(f"failed: {', '.join(tasks)} of {cause}", file=sys.stderr)
    if causes:
        raise UnfinishedError("Some scores failed, as listed; the same command goes on from those that are there.")


def _score_all(encoders: list[Candidate], tasks: list[Any], cfg: Config) -> list[Outcome]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    print(f"{len(encoders)} encoder{'s' * (len(encoders) > 1)} x {len(tasks)} tasks.", flush=True)
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
            try:
                o = outcomes[i] = score(encoders[i], tasks, options, on_task, on_texts)
                print(f"{o.title}: {o.computed} new scores, {o.texts:,} texts encoded", flush=True)
            except UserError as error:  # of a run that cannot be loaded
                if len(encoders) == 1 or of_disk(error):
                    raise
                outcomes[i] = Outcome(encoders[i].title, model_folder(encoders[i]) / "none", failed={"all": str(error)})
    return [outcomes[i] for i in range(len(encoders))]


def score_table(outcomes: Sequence[Outcome]) -> str:
    """Return the mean main score by type, each task counting once, and the mean over types.

    A task that failed for all is left out; one that failed for some leaves their means empty.
    """
    import pandas as pd

    from evaluation.tasks.task_data import TYPES

    scores = pd.DataFrame([{task: value for task, (_, value) in o.scores.items()} for o in outcomes])
    type_of = {task: kind for o in outcomes for task, (kind, _) in o.scores.items()}
    kinds = [*(kind for kind in TYPES if kind in type_of.values()), *sorted({*type_of.values()} - {*TYPES})]
    of_kind = {kind: [task for task in scores if type_of[str(task)] == kind] for kind in kinds}
    means = {f"{k} ({len(t)})": scores[t].mean(axis=1, skipna=False) for k, t in of_kind.items()}
    table = pd.DataFrame(means, index=scores.index)
    table["mean of types"] = table.mean(axis=1, skipna=False)
    table = table.set_axis([o.title for o in outcomes]).rename_axis(columns="mean main score")
    return table.to_string(float_format="%.4f", na_rep="")


def _uninstructed(encoders: Sequence[Candidate]) -> Iterator[str]:
    """Say which runs are scored with instructions though they were trained without any."""
    for candidate in encoders:
        config, data = candidate.manifest["config"], candidate.manifest.get("data", {})
        learned = config.get("data", {}).get("instruction") or data.get("instructed")
        if candidate.trained and config["evaluation"]["instructions"] != "none" and not learned:
            yield (
                f"{candidate.title} was trained without instructions and is scored with them. Give instructions=none, "
                "or train with data.instruction=..."
            )


def overlap_notes(outcomes: Sequence[Outcome], largest: float | None) -> Iterator[str]:
    """Name the tasks of which more than the share `largest` of the texts was trained on, and what was not counted."""
    if largest is None:
        return
    for o in outcomes:
        shares = {task: counts["exact"] / max(1, counts["texts"]) for task, counts in o.overlap.items()}
        over = sorted((task for task in shares if shares[task] > largest), key=lambda task: -shares[task])
        if over:
            named = ", ".join(f"{task} ({shares[task]:.1%})" for task in over)
            yield (
                f"Contamination: {o.title} was trained on more than {largest:.1%} of the texts of {len(over)} of "
                f"{len(o.overlap)} tasks: {named}. Leave these tasks or those training texts out, or say so."
            )
    if lacking := [o.title for o in outcomes if o.unmeasured]:
        unknown = f"cache_dir lacks the training texts of {', '.join(lacking)}"
        yield f"Contamination is not counted: {unknown}. Give the train.py command again: it writes them."
