"""The tasks of one evaluation as several jobs: dealt out by their texts, and read from disk as one table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cli.errors import UserError
from cli.quiet import quiet
from evaluation.candidates.candidates import Candidate, Config, candidates, configured
from evaluation.candidates.readings import check_readings, read_by
from evaluation.command import check, check_encoder, conclude, run
from evaluation.crew import deal, outer
from evaluation.instructions import read_instructions
from evaluation.plan.plan import scored_in
from evaluation.plan.work import forecast
from evaluation.report import score_table
from evaluation.results import main_score, written_record
from evaluation.scoring import Outcome
from evaluation.tasks.chosen import TaskSet, task_set
from evaluation.tasks.task_data import texts_of_task
from records.fingerprint import remember_below


@dataclass
class Unit:
    """Tasks that one job scores, since most of their texts are the same: embedded once. texts: those of ours."""

    tasks: list[Any]
    texts: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Shards:
    """The encoders and tasks of one command, whatever job scores them."""

    found: list[Candidate]
    tasks: TaskSet

    @classmethod
    def of(cls, cfg: Config) -> "Shards":
        """Return those that a configuration of evaluate.py asks for. Raises `UserError` as the command itself does."""
        if cfg["foreign"]:
            raise UserError("foreign= does not go with shards= or launcher=. Leave them out.")
        readings = check_readings(cfg["readings"])
        if cfg["instructions"] is not None:
            cfg = {**cfg, "evaluation": {**cfg["evaluation"], "instructions": cfg["instructions"]}}
        remember_below(cfg["cache_dir"])
        encoders = candidates(cfg)
        return cls(read_by(encoders, readings) if readings else encoders, task_set(cfg))

    def dealt(self, jobs: int) -> list[list[str]]:
        """Return the names of the tasks that some encoder lacks, for each of at most `jobs` jobs.

        Each unit goes to the job that has the fewest tokens so far, the largest unit first.
        """
        done = [self.scored(candidate)[1] for candidate in self.found]
        left = [task for task in self.tasks.tasks if not all(task.metadata.name in names for names in done)]
        units = self._units(left)
        if len(units) < jobs:
            units = [Unit([task]) for task in left]
        tokens = self._tokens(units)
        order = sorted(range(len(units)), key=lambda k: -tokens[k])
        hands = deal([tokens[k] for k in order], min(jobs, max(1, len(units))))
        place = {task.metadata.name: n for n, task in enumerate(left)}
        named = [[task.metadata.name for k in hand for task in units[order[k]].tasks] for hand in hands]
        return [sorted(names, key=place.__getitem__) for names in named if names]

    def _units(self, tasks: Sequence[Any]) -> list[Unit]:
        units: list[Unit] = []
        for task in tasks:
            data = self.tasks.data.get(task.metadata.name)  # mteb's own are not read here
            texts = {text for _, text in texts_of_task(data)} if data else set()
            shared = (u for u in units if texts and 2 * len(texts & u.texts) >= min(len(texts), len(u.texts) or 1))
            unit = next(shared, None)
            if unit is None:
                units.append(Unit([task], texts))
            else:
                unit.tasks.append(task)
                unit.texts |= texts
        return units

    def _tokens(self, units: Sequence[Unit]) -> list[int]:
        """Tokens of each unit for the first encoder; of one that mteb says nothing about, the mean of the others."""
        first = self.found[0]
        mode = first.manifest["config"].get("evaluation", {}).get("instructions", "none")
        works = [forecast(first.measure(), read_instructions(mode), unit.tasks, self.tasks) for unit in units]
        known = [work.tokens for work in works if work]
        return [work.tokens if work else sum(known) // max(1, len(known)) for work in works]

    def scored(self, candidate: Candidate) -> tuple[Path, set[str]]:
        """Return the folder of a candidate's scores, on whatever device they were made, and the tasks that are whole.

        A score that no record speaks of is not: another job's record may have taken its place where the file system
        knows no locks.
        """
        folder, names = scored_in(candidate, self.tasks)
        return folder, names & written_record(folder).get("tasks", {}).keys()

    def outcomes(self) -> list[Outcome]:
        """Return the scores of all encoders as they lie on disk; nothing is loaded. Raises `UserError` for a lack."""
        outcomes = []
        for candidate in self.found:
            folder, names = self.scored(candidate)
            lacking = [task.metadata.name for task in self.tasks.tasks if task.metadata.name not in names]
            if lacking:
                raise UserError(
                    f"{candidate.title} lacks {len(lacking)} scores after all jobs, of {lacking[0]} first. "
                    "Give the same command again: it scores what is lacking."
                )
            scores = {t.metadata.name: (t.metadata.type, main_score(folder, t)) for t in self.tasks.tasks}
            overlap = written_record(folder).get("overlap", {})
            counted = {name: overlap[name] for name in scores if name in overlap}
            outcomes.append(Outcome(candidate.title, folder, scores, overlap=counted))
        return outcomes


def in_jobs(words: Sequence[str], start: Callable[[list[list[str]], Callable[[Config], None]], None]) -> None:
    """Have jobs score the tasks that are left, then print the table of all.

    start: runs the function that it is given on the configuration of a job for each list of tasks.
    """
    cfg = configured(words)
    dealt = deal_out(cfg)
    if cfg["plan"]:
        run({**cfg, "devices": 1})
        return
    if dealt:
        start(dealt, partial(_score, asked=cfg["asked"]))
    _table(cfg)


def _score(config: Config, asked: Sequence[str]) -> None:
    """Score what a job's configuration asks for; a process that encodes for another one ends well."""
    try:
        run({**config, "asked": asked})
    except SystemExit as left:
        if left.code:
            raise


def deal_out(cfg: Config) -> list[list[str]]:
    """Return the tasks of each of the jobs of `cfg` (its `shards`, or one); none where all is scored."""
    check(cfg)
    check_encoder(cfg)
    if outer():
        raise UserError(
            "shards= and launcher= start jobs of their own. Give the command once, without srun or torchrun."
        )
    with quiet():
        dealt = Shards.of(cfg).dealt(cfg["shards"] or 1)
    counts = ", ".join(str(len(tasks)) for tasks in dealt)
    print(f"{sum(map(len, dealt))} tasks to score, in {len(dealt)} jobs: {counts}." if dealt else "All is scored.")
    return dealt


def _table(cfg: Config) -> None:
    """Print the table of what the jobs of `cfg` scored, read from the results folder alone."""
    with quiet():
        shards = Shards.of(cfg)
        outcomes = shards.outcomes()
    print(f"\n{score_table(outcomes)}\n")
    conclude(outcomes, shards.found, shards.tasks.tasks, cfg)
