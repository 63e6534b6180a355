"""Scores of one candidate on its tasks, on disk: mteb computes them, this module decides which are missing."""

import math
import random
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli.errors import UserError
from corpora.overlap import OverlapCount
from encoders.tokens import template_of
from evaluation import results
from evaluation.candidates import Candidate
from evaluation.embeddings import Embeddings
from evaluation.instructions import Instructions
from evaluation.overlap import Counts, training_files
from records.files import alone_in

# Whose errors speak of the hub or of the way to it; of some neither OSError nor ConnectionError is a base.
CLIENTS = {"huggingface_hub", "httpx", "httpcore", "requests", "urllib3", "aiohttp"}
BY_NAME = ("inputs", "tasks", "scores", "overlap")  # parts of the record that grow with the tasks


@dataclass
class Outcome:
    """The scores of one candidate, and their cost."""

    title: str
    folder: Path
    scores: dict[str, tuple[str, float]] = field(default_factory=dict)  # task -> (type, main score)
    computed: int = 0  # tasks; the others were finished before
    seconds: float = 0.0  # in all, without loading the encoder
    encoding: float = 0.0  # seconds of it in the encoder
    texts: int = 0  # encoded
    tokens: int = 0  # encoded, after truncation
    overlap: dict[str, Counts] = field(default_factory=dict)  # task -> its texts, and those among the training texts
    unmeasured: str = ""  # digest of training texts that are not there, so that no overlap is counted

    @property
    def cost(self) -> str:
        """A line on what was done: scores, texts, time."""
        rate = f", {self.tokens / self.encoding:,.0f} tokens/s" if self.encoding else ""
        return f"{self.title}: {self.computed} new scores, {self.texts:,} texts in {self.seconds:.0f} s{rate}"


@dataclass(frozen=True)
class Options:
    """Settings of scoring, the same for all candidates of a command."""

    instructions: Instructions = field(default_factory=Instructions)
    predictions: bool = False
    cache_dir: Path | None = None  # below which embeddings are kept; None: for this call alone
    overlap: Path | None = None  # cache_dir, below which the training texts lie; None: they are not looked for


def score(
    candidate: Candidate,
    tasks: list[Any],
    options: Options,
    on_task: Callable[[str], None] = lambda _: None,
    on_texts: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Score one candidate on `tasks`, leaving out those that the same encoder has finished before.

    on_task is called with the name before each task, on_texts with the number of texts of each chunk. Raises
    `UserError` for NaN embeddings or scores, and for a data set that cannot be fetched; what was finished until then
    stays.
    """
    embeddings = candidate.embeddings(options.cache_dir)
    embeddings.whose = f"{candidate.title} ({candidate.folder or 'untrained'})"
    every = [part for task in tasks for part in [*results.parts(task), task]]
    scoring = Scoring(candidate, options, embeddings, every, on_texts)
    outcome, meter = Outcome(candidate.title, scoring.folder), embeddings.encoder.meter
    started, before = time.perf_counter(), copy(meter)  # readings of one checkpoint share a meter
    for task in tasks:
        name = task.metadata.name
        on_task(name)
        made = [scoring.make(part) for part in results.parts(task)]
        if any(made):  # what is the mean of its parts is taken again
            (scoring.folder / f"{name}.json").unlink(missing_ok=True)
        outcome.computed += scoring.make(task)
        outcome.scores[name] = task.metadata.type, score_of(scoring.folder, task)
    names = {task.metadata.name for task in every}
    outcome.overlap = {name: counts for name, counts in scoring.record["overlap"].items() if name in names}
    outcome.unmeasured = scoring.lacking
    results.describe_tasks(candidate.results, tasks)
    outcome.seconds = time.perf_counter() - started
    outcome.encoding, outcome.texts = meter.seconds - before.seconds, meter.texts - before.texts
    outcome.tokens = meter.tokens - before.tokens
    return outcome


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
        from evaluation.mteb_encoder import MtebEncoder, model_meta

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
        before = results.written_record(self.folder)
        self.record: dict[str, Any] = {
            "fingerprint": embeddings.fingerprint,
            "instructions": instructions.mode,
            "instructions_used": instructions.used([task.metadata for task in tasks]),
            "max_length": embeddings.encoder.max_length,
            "mteb": version("mteb"),
            "seed": tasks[0].seed,  # of mteb's draws
            "encoder": embeddings.encoder.settings,
            **{part: dict(before.get(part, {})) for part in BY_NAME},
        }

    def make(self, task: Any) -> bool:
        """Score the task unless it is there; return whether it was computed."""
        name, path = task.metadata.name, self.folder / f"{task.metadata.name}.json"
        predictions = None if results.parts(task) else self.predictions  # an aggregate has no data of its own
        if name not in self.record["tasks"]:  # a score whose inputs nobody wrote down proves nothing: it is made again
            path.unlink(missing_ok=True)
        if predictions and not (predictions / task.prediction_file_name).is_file():
            path.unlink(missing_ok=True)
        if results.finished(self.folder, task, self.record):
            return False
        if self.counter:
            self.counter.seen.clear()
        evaluate_task(self.adapter, task, self.candidate.results, predictions)
        self._write(task, self.counter.counts() if self.counter and self.counter.seen else {})
        return True

    def _write(self, task: Any, counted: Counts) -> None:
        """Put the facts of a new score into the record beside the scores, to which another command may add its own."""
        name, record = task.metadata.name, self.record
        record["inputs"] |= {place: digest.hexdigest() for place, digest in self.adapter.asked.items()}
        with alone_in(self.folder, wait=True):
            others = results.written_record(self.folder)
            for part in BY_NAME:
                record[part] = {**others.get(part, {}), **record[part]}
            record["tasks"][name], record["scores"][name] = task.metadata.revision, results.digest(self.folder, task)
            record["overlap"].pop(name, None)
            record["overlap"] |= {name: counted} if counted else {}
            results.write_manifest(self.folder, self.candidate, record)


def evaluate_task(adapter: Any, task: Any, folder: Path, predictions: Path | None) -> None:
    """Have mteb score the task. predictions: folder of the model's predictions and items, one file per task."""
    import mteb

    from evaluation.items import write_items
    from evaluation.mteb_encoder import ENCODE_KWARGS, SharedCache

    reseed(task)
    try:
        if predictions:
            task.load_data()  # before mteb, which would put it away again: the items need the truth
        mteb.evaluate(
            adapter,
            task,
            cache=SharedCache(folder),
            overwrite_strategy="only-missing",
            encode_kwargs=ENCODE_KWARGS,
            prediction_folder=predictions,
            show_progress_bar=False,
            co2_tracker=False,
        )
        if predictions:
            write_items(predictions, task)
    except Exception as error:
        raise _explained(error, task) from error
    finally:
        if predictions and task.data_loaded:
            task.unload_data()


def _explained(error: Exception, task: Any) -> Exception:
    """Say what can be done about an error of mteb: a measure it lacks, a hub without the data set; else the error."""
    meta = task.metadata
    if isinstance(error, KeyError) and error.args == (meta.main_score,):
        return UserError(f"mteb computes no {meta.main_score} for {meta.name}. Correct main_score in its task.json.")
    of_client = any(kind.__module__.split(".")[0] in CLIENTS for kind in type(error).__mro__)
    lost = of_client or isinstance(error, (ConnectionError, TimeoutError))
    if not lost and type(error).__name__ != "DatasetNotFoundError":
        return error
    return UserError(
        f"The data set of task {meta.name} cannot be fetched from the hub ({type(error).__name__}). Connect to the "
        "network, or fill HF_HOME on a machine that has it; benchmark=docs and tasks_dir=<folder> need no network."
    )


def reseed(task: Any) -> None:
    """Put the task's random streams at their start, as mteb does only when it makes the task.

    Else the second model of a command would be clustered on other samples.
    """
    import numpy as np

    task.rng_state, task.np_rng = random.Random(task.seed), np.random.default_rng(task.seed)
    random.seed(task.seed)
    np.random.seed(task.seed)


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
