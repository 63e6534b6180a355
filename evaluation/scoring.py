"""Scores of one candidate on its tasks, on disk: mteb computes them, this module decides which are missing."""

import math
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli.errors import UserError, disk_fault
from corpora.copies import OverlapCount, place
from encoders.templates import template_of
from evaluation import results
from evaluation.candidates import Candidate
from evaluation.embeddings import Embeddings
from evaluation.instructions import Instructions
from records.earlier_runs import texts_read
from records.files import alone_in
from records.manifest import code

BY_NAME = ("inputs", "tasks", "scores", "overlap", "instructions_used")  # parts of the record, by task


@dataclass
class Outcome:
    """The scores of one candidate, and what is said of them."""

    title: str
    folder: Path
    scores: dict[str, tuple[str, float]] = field(default_factory=dict)  # task -> (type, main score)
    computed: int = 0  # tasks; the others were finished before
    texts: int = 0  # encoded
    overlap: dict[str, dict[str, int]] = field(default_factory=dict)  # task -> its texts, and those trained on
    unmeasured: str = ""  # digest of training texts that are not there, so that no overlap is counted
    failed: dict[str, str] = field(default_factory=dict)  # task -> why it has no score

    @contextmanager
    def naming(self, task: Any) -> Iterator[None]:
        """Note why the block, which scores `task`, failed, so that others may go on; a fault of the disk ends them all.

        An error that is no `UserError` shows its trace too.
        """
        try:
            yield
        except Exception as error:
            if of_disk(error):
                raise
            ours = isinstance(error, UserError)
            if not ours:
                traceback.print_exception(error)
            self.failed[task.metadata.name] = " ".join(f"{'' if ours else f'{type(error).__name__}: '}{error}".split())


@dataclass(frozen=True)
class Options:
    """Settings of scoring, the same for all candidates of a command."""

    instructions: Instructions = field(default_factory=Instructions)
    predictions: bool = False
    cache_dir: Path | None = None  # below which embeddings are kept; None: for this call alone
    overlap: Path | None = None  # cache_dir, below which the training texts lie; None: they are not looked for


def of_disk(error: BaseException) -> bool:
    """Return whether an error, or what it explains, is a fault of the disk, which no other task is spared."""
    return bool(disk_fault(error) or disk_fault(error.__cause__ or error))


def score(
    candidate: Candidate,
    tasks: list[Any],
    options: Options,
    on_task: Callable[[str], None] = lambda _: None,
    on_texts: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Score one candidate on `tasks`, leaving out those that the same encoder has finished before.

    on_task is called with the name before each task, on_texts with the number of texts of each chunk. A task that
    fails, for NaN, a data set that cannot be fetched or any other cause, is named in the outcome, and the next begins.
    """
    embeddings = candidate.embeddings(options.cache_dir)
    embeddings.whose = f"{candidate.title} ({candidate.folder or 'untrained'})"
    every = [part for task in tasks for part in [*results.parts(task), task]]
    scoring = Scoring(candidate, options, embeddings, every, on_texts)
    outcome, meter = Outcome(candidate.title, scoring.folder), embeddings.encoder.meter
    before = meter.texts  # variants of one checkpoint share a meter
    for task in tasks:
        name = task.metadata.name
        on_task(name)
        with outcome.naming(task):
            made = [scoring.make(part) for part in results.parts(task)]
            if any(made):  # what is the mean of its parts is taken again
                (scoring.folder / f"{name}.json").unlink(missing_ok=True)
            outcome.computed += scoring.make(task)
            outcome.scores[name] = task.metadata.type, score_of(scoring.folder, task)
    names = {task.metadata.name for task in every}
    outcome.overlap = {name: counts for name, counts in scoring.record["overlap"].items() if name in names}
    outcome.unmeasured = scoring.lacking
    results.describe_tasks(candidate.results, tasks)
    outcome.texts = meter.texts - before
    return outcome


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


class Scoring:
    """The tasks of one candidate, one after another. record: how its scores are made, which lies beside them."""

    def __init__(
        self,
        candidate: Candidate,
        options: Options,
        embeddings: Embeddings,
        tasks: list[Any],
        on_texts: Callable[[int], None],
    ) -> None:
        from encoders.identity import versions  # imports torch
        from evaluation.mteb_encoder import MtebEncoder, model_meta  # mteb takes seconds to import

        instructions, template = options.instructions, template_of(candidate.manifest["config"])
        revision = results.revision(candidate, embeddings.fingerprint, instructions)
        meta = model_meta(candidate.name, revision, embeddings, use_instructions=instructions.mode != "none")
        self.candidate, self.folder = candidate, results.model_folder(candidate) / revision
        files, self.lacking = training_files(candidate, options.overlap) if options.overlap else ([], "")
        self.counter = OverlapCount(files) if files else None
        self.adapter = MtebEncoder(embeddings, meta, instructions, on_texts, template)
        self.adapter.seen = self.counter.see if self.counter else None
        place = candidate.results / "predictions" / meta.model_name_as_path() / revision
        self.predictions = place if options.predictions else None
        self.made, before = set[str](), results.written_record(self.folder)
        program = code(candidate.manifest["config"]["pooler"]["name"])
        made_by = {"code": program["sha256"], "pooler_code": program["pooler"], **versions("tokenizers")}
        self.record: dict[str, Any] = {
            "fingerprint": embeddings.fingerprint,
            "instructions": instructions.mode,
            "max_length": embeddings.encoder.max_length,
            "mteb": version("mteb"),
            "seed": tasks[0].seed,  # of mteb's draws
            "encoder": {**embeddings.encoder.settings, **made_by},
            **{part: dict(before.get(part, {})) for part in BY_NAME},
        }

    def make(self, task: Any) -> bool:
        """Score the task unless it is there; return whether it was computed."""
        from evaluation.mteb_encoder import evaluate_task

        name, path = task.metadata.name, self.folder / f"{task.metadata.name}.json"
        predictions = None if results.parts(task) else self.predictions  # an aggregate has no data of its own
        unknown = name not in self.record["tasks"]  # a score whose inputs nobody wrote down proves nothing
        before, used = self.record["instructions_used"].get(name, {}), self.adapter.instructions.used(task.metadata)
        unseen = predictions and not (predictions / task.prediction_file_name).is_file()
        if unknown or before != used or unseen:
            path.unlink(missing_ok=True)
        if results.finished(self.folder, task, self.record):
            return False
        self.adapter.asked = {}
        self.made.add(name)
        if self.counter:
            self.counter.seen.clear()
        evaluate_task(self.adapter, task, self.candidate.results, predictions)
        self._write(task, self.counter.counts() if self.counter and self.counter.seen else {})
        return True

    def _write(self, task: Any, counted: dict[str, int]) -> None:
        """Put the facts of a new score into the record beside the scores, to which another command may add its own."""
        name, record = task.metadata.name, self.record
        with alone_in(self.folder, wait=True):
            others = results.written_record(self.folder)
            for part in BY_NAME:
                record[part] |= others.get(part, {})
            record["inputs"] |= {place: digest.hexdigest() for place, digest in self.adapter.asked.items()}
            record["tasks"][name], record["scores"][name] = task.metadata.revision, results.digest(self.folder, task)
            used = self.adapter.instructions.used(task.metadata)
            for part, value in (("overlap", counted), ("instructions_used", used)):
                record[part].pop(name, None)
                record[part] |= {name: value} if value else {}
            kept = others if record["scores"].keys() - self.made else {}
            how = _since(kept, {key: value for key, value in record.items() if key not in BY_NAME})
            results.write_manifest(self.folder, self.candidate, {**record, **how})


def _since(before: Any, now: Any) -> Any:
    """Return `now`, or "before -> now" where earlier scores were made otherwise: the control rule then sees both."""
    if isinstance(now, dict):
        return {key: _since(before.get(key, value), value) for key, value in now.items()}
    return before if before == now or str(before).endswith(f" -> {now}") else f"{before} -> {now}"


def score_of(folder: Path, task: Any) -> float:
    """Return the task's main score. Raises `UserError` where it is NaN, and removes the file."""
    value = results.main_score(folder, task)
    if math.isnan(value):
        (folder / f"{task.metadata.name}.json").unlink(missing_ok=True)
        raise UserError(
            f"The {task.metadata.main_score} of {task.metadata.name} is not a number: all embeddings may be alike "
            "(collapse). Look at the run's metrics; its score was not kept."
        )
    return value
