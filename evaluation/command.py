"""`python evaluate.py key=value ...`: configuration in, scores on disk, tables on the screen."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.compose import composed
from cli.errors import UserError
from cli.help import help_screen
from cli.hydra_flags import job_config, own_flags
from cli.limits import (
    ENCODER,
    ENCODER_WORDS,
    LAUNCHER,
    LAUNCHER_WORDS,
    SWITCH,
    Limit,
    check_groups,
    check_limits,
    check_prefixes,
    check_study,
    real,
)
from cli.quiet import quiet
from cli.quoting import evaluate_words
from evaluation.candidates.candidates import Candidate, Config, candidates, configured
from evaluation.candidates.readings import check_readings, read_by, share_starts
from evaluation.instructions import MODES, read_instructions
from evaluation.overlap import overlap_notes
from evaluation.plan.plan import Plan, check_mode
from evaluation.plan.speed import remember
from evaluation.report import report, task_notes
from evaluation.results import nothing_left
from evaluation.scoring import Options, Outcome, score
from records.fingerprint import remember_below

if TYPE_CHECKING:
    from evaluation.crew import Crew


LIMITS = ENCODER | {
    **LAUNCHER,
    "shards": Limit(1, "no jobs"),
    "overlap": real(0, "not counted", largest=1),
    "threads": Limit(1, "one for each core"),
    "devices": Limit(1),
    **{f"benchmark.{key}": Limit(2) for key in ("documents", "candidates", "classes")},
    **{f"benchmark.{key}": Limit(1) for key in ("queries", "class_members", "train_per_class", "body_chars")},
    **{f"benchmark.{key}": Limit(1) for key in ("experiments", "bootstraps", "relatives", "summarized")},
}
WORDS = ENCODER_WORDS | {
    **LAUNCHER_WORDS,
    "instructions": (None, *MODES),
    "untrained": (None, "also", "only", True, False),
    "benchmark.kind": ("docs", "mteb"),
    **dict.fromkeys(("predictions", "plan", "progress"), SWITCH),
}


def main(arguments: Sequence[str]) -> None:
    """Read the command line, score, print. Raises `UserError` for what the user can mend."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars inside mteb would tear ours; tqdm reads it when first imported
    if {"-h", "--help"} & set(arguments):
        print(help_screen("evaluate"))
        return
    flags = own_flags("evaluate.py", arguments)
    if flags.cfg:
        print(job_config(composed("evaluate", evaluate_words(flags.overrides)), flags), end="")
        return
    run(configured(flags.overrides))


def finished(arguments: Sequence[str]) -> bool:
    """Tell whether a command line that names runs would score nothing; False where only loading an encoder tells.

    False, too, with predictions=true: scores that have none are named by the command itself.
    """
    from evaluation.tasks.chosen import task_set

    cfg = configured(arguments)
    if cfg["instructions"] is not None:
        cfg["evaluation"]["instructions"] = cfg["instructions"]
    remember_below(cfg["cache_dir"])
    tasks = task_set(cfg).tasks
    more = cfg["readings"] or cfg["predictions"]
    return not more and all(nothing_left(candidate, tasks) for candidate in candidates(cfg))


def check(cfg: Config) -> list[str]:
    """Refuse numbers and words that are not allowed, before anything is imported or read; return the readings."""
    check_groups(cfg, ("model", "attn", "pooler", "template"))
    check_study(cfg)
    if isinstance(cfg["instructions"], str):
        read_instructions(cfg["instructions"])  # it names the nearest
    check_limits(cfg, LIMITS, WORDS)
    check_mode(cfg["embeddings"])
    check_prefixes(cfg)
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
    remember_below(cfg["cache_dir"])
    read_instructions(cfg["evaluation"]["instructions"])
    if cfg["foreign"]:
        return _run_foreign(cfg)
    encoders = candidates(cfg)  # what is wrong in the command shows before anything slow is imported
    encoders = read_by(encoders, readings) if readings else encoders
    import torch

    from evaluation.crew import crew, outer, serve_if_other
    from evaluation.plan.plan import make_plan
    from evaluation.tasks.chosen import task_set

    check_encoder(cfg)
    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    serve_if_other(idle=cfg["plan"])
    cfg["devices"] = outer().world_size() if outer() else cfg["devices"]
    tasks = task_set(cfg)
    encoders = encoders if readings else share_starts(encoders)
    with quiet():
        plan = make_plan(encoders, tasks, cfg)
    print(plan.text, flush=True)
    _name_uninstructed(encoders)
    if cfg["plan"]:
        return []

    with crew(cfg["devices"], cfg["threads"], cfg["accelerator"]) as others:
        outcomes = _score_all(encoders, tasks.tasks, cfg, plan, others)
    print(f"\n{report(outcomes)}\n")
    conclude(outcomes, encoders, tasks.tasks, cfg)
    return outcomes


def conclude(outcomes: Sequence[Outcome], encoders: Sequence[Candidate], tasks: Sequence[Any], cfg: Config) -> None:
    """Say where the scores lie, and what to know of them."""
    for place in dict.fromkeys(str(candidate.results) for candidate in encoders):
        print(f"Scores: {Path(place) / 'results'}. Compare them: python -m analysis scores={place}")
    notes = [*_older_scores(outcomes), *_unpredicted(outcomes), *task_notes(tasks)]
    notes += overlap_notes([(o.title, o.overlap, o.unmeasured) for o in outcomes], cfg["overlap"])
    for note in notes:
        print(f"Note: {note}")


# of our own encoders
IDLE = ("run", "readings", "untrained", "instructions", "predictions", "plan")


def _run_foreign(cfg: Config) -> list[Outcome]:
    """Score the model of `foreign`. Raises `UserError` for words that do not go with it."""
    idle = [key for key in IDLE if cfg[key]] + ["devices"] * (cfg["devices"] != 1)
    if idle:
        raise UserError(f"foreign= does not go with {idle[0]}=. Leave one of them out.")
    import torch

    from evaluation.crew import outer

    if started := outer():  # each process would encode every text and write the same files
        raise UserError(
            f"foreign= is scored by one process, and torchrun or srun started {started.world_size()}. "
            "Give the command without them."
        )
    from evaluation.foreign import score_foreign
    from evaluation.tasks.chosen import task_set

    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    tasks = task_set(cfg).tasks
    outcome = score_foreign(cfg, tasks)
    print(f"{report([outcome])}\n")
    place = outcome.folder.parents[2]
    print(f"Scores: {place / 'results'}. Beside ours: python -m analysis scores={place} allow=[manifest]")
    for note in task_notes(tasks):
        print(f"Note: {note}")
    return [outcome]


def _score_all(
    encoders: list[Candidate], tasks: list[Any], cfg: Config, plan: Plan, others: "Crew | None"
) -> list[Outcome]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    counts = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    columns = "{task.description}", *counts, "{task.fields[texts]:,} texts"
    position = {task.metadata.name: n for n, task in enumerate(tasks)}
    outcomes: dict[int, Outcome] = {}
    first = {candidate.checkpoint: i for i, candidate in reversed(list(enumerate(encoders)))}
    order = sorted(range(len(encoders)), key=lambda i: first[encoders[i].checkpoint])  # what shares a model, one by one
    with Progress(*columns, console=Console(stderr=True), disable=not cfg["progress"], transient=True) as bar:
        line = bar.add_task("", total=len(encoders) * len(tasks), texts=0)

        def on_texts(count: int) -> None:
            bar.update(line, texts=bar.tasks[0].fields["texts"] + count)

        for done, i in enumerate(order):
            candidate = encoders[i]
            bar.update(line, completed=done * len(tasks), texts=0)

            def on_task(name: str, title: str = candidate.title, before: int = done * len(tasks)) -> None:
                bar.update(line, description=f"{title} {name}", completed=before + position[name])

            mode = candidate.manifest["config"]["evaluation"]["instructions"]
            overlap = None if cfg["overlap"] is None else Path(cfg["cache_dir"])
            instructions = read_instructions(mode)
            options = Options(instructions, cfg["predictions"], plan.cache_dir, plan.tokens[i], overlap, others)
            outcome = score(candidate, tasks, options, on_task, on_texts)
            outcomes[i] = outcome
            spent = {"tokens": outcome.tokens, "seconds": outcome.encoding, "devices": cfg["devices"]}
            remember(Path(cfg["cache_dir"]), candidate.manifest["config"], cfg["threads"], **spent)
            print(f"{candidate.title}: {outcome.computed} new scores in {outcome.seconds:.0f} s", flush=True)
    return [outcomes[i] for i in range(len(encoders))]


def _name_uninstructed(encoders: Sequence[Candidate]) -> None:
    """Say which runs are scored with instructions though they were trained without any."""
    names = []
    for candidate in encoders:
        config, data = candidate.manifest["config"], candidate.manifest.get("data", {})
        learned = config.get("data", {}).get("instruction") or data.get("instructed", 1)  # older runs did not count
        if candidate.trained and config["evaluation"]["instructions"] != "none" and not learned:
            names.append(candidate.title)
    if names:
        print(
            f"Note: {', '.join(names)}: trained without instructions and scored with them (divergence 21 of "
            "docs/reference_divergences.md). Give instructions=none, or train with data.instruction=...",
            flush=True,
        )


def _older_scores(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Scores of the same seed under other weights or settings stay; say so, since analysis asks which count."""
    for outcome in outcomes:
        seed = outcome.folder.name.split("@")[0]
        older = [p.name for p in outcome.folder.parent.glob(f"{seed}@*") if p.is_dir() and p != outcome.folder]
        if older:
            yield f"{outcome.folder.parent} also holds {', '.join(sorted(older))}; delete what no longer counts."


def _unpredicted(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A score that is there is not made again, so it gets no predictions; say what to do."""
    for outcome in outcomes:
        if outcome.unpredicted:
            yield (
                f"{outcome.title} was scored before without predictions on {', '.join(outcome.unpredicted)};"
                " for them give results=<another folder>, or delete these scores and run the command again."
            )
