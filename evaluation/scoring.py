"""Scores of one candidate on its tasks, on disk: mteb computes them, this module decides which are missing."""

import math
import random
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli.errors import UserError, of_the_network
from encoders.templates import template_of
from evaluation import results
from evaluation.candidates.candidates import Candidate
from evaluation.embeddings.cache import EmbeddingCache
from evaluation.instructions import Instructions
from evaluation.overlap import Counts, Overlap, overlap_of
from records.lock import alone_in

BY_NAME = ("inputs", "tasks", "left_out", "scores", "overlap")  # parts of the record that grow with the tasks


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
    unmeasured: str = ""  # why the overlap of some task is not there

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
    cache_dir: Path | None = None  # of embeddings on disk; None keeps them in memory, for one candidate
    overlap: Path | None = None  # cache_dir, below which the training texts lie; None: they are not looked for


def score(
    candidate: Candidate,
    tasks: list[Any],
    options: Options,
    on_task: Callable[[str], None] = lambda _: None,
    on_texts: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Score one candidate on `tasks`, leaving out those that the same encoder has finished before.
    on_task is called with the name before each task, on_texts with the number of texts of each batch. Raises
    `UserError` for NaN embeddings or scores, and for a data set that cannot be fetched; what was finished until then
    stays."""
    from cli.quiet import quiet
    from evaluation.mteb_encoder import MtebEncoder, model_meta

    with quiet():
        encoder = candidate.load()
    revision = results.revision(candidate, encoder.fingerprint, options.instructions)
    folder = results.model_folder(candidate) / revision
    results.drop_cut_lines(folder)
    meta = model_meta(candidate.name, revision, encoder, use_instructions=options.instructions.mode != "none")
    store, whose = candidate.store(encoder, options.cache_dir), f"{candidate.title} ({candidate.folder or 'untrained'})"
    cache = EmbeddingCache(encoder, store, options.cache_dir, whose)
    adapter = MtebEncoder(cache, meta, options.instructions, on_texts, template_of(candidate.manifest["config"]))
    outcome = Outcome(candidate.title, folder)
    started, before = time.perf_counter(), copy(encoder.meter)
    every = [part for task in tasks for part in [*results.parts(task), task]]
    record = _record(encoder, options, every, folder)
    overlap = overlap_of(candidate, options.overlap)
    make = partial(
        _make,
        candidate=candidate,
        options=options,
        adapter=adapter,
        outcome=outcome,
        record=record,
        overlap=overlap,
    )
    for task in tasks:
        name = task.metadata.name
        on_task(name)
        if sum(map(make, results.parts(task))):  # what is the mean of its parts is taken again
            (folder / f"{name}.json").unlink(missing_ok=True)
        outcome.computed += make(task)
        outcome.scores[name] = task.metadata.type, score_of(folder, task)
    names = [part.metadata.name for task in tasks for part in results.parts(task) or [task]]
    outcome.overlap = {name: record["overlap"][name] for name in names if name in record["overlap"]}
    if overlap.read and len(outcome.overlap) < len(set(names)):
        outcome.unmeasured = (
            overlap.lacking or "they were scored before; with results=<another folder> they are counted"
        )
    results.describe_tasks(candidate.results, tasks)
    outcome.seconds = time.perf_counter() - started
    meter = encoder.meter  # which readings of one checkpoint share
    outcome.encoding, outcome.texts = meter.seconds - before.seconds, meter.texts - before.texts
    outcome.tokens = meter.tokens - before.tokens
    return outcome


def _make(
    task: Any,
    *,
    candidate: Candidate,
    options: Options,
    adapter: Any,
    outcome: Outcome,
    record: dict[str, Any],
    overlap: Overlap,
) -> bool:
    """Score the task unless it is there; return whether it was computed. `record` says how, and lies beside scores."""
    name, folder, meta = task.metadata.name, outcome.folder, adapter.mteb_model_meta
    predicts = options.predictions and not results.parts(task)  # an aggregate has no data of its own
    predictions = candidate.results / "predictions" / meta.model_name_as_path() / meta.revision
    if name not in record["tasks"]:  # a score whose inputs nobody wrote down proves nothing: it is made again
        (folder / f"{name}.json").unlink(missing_ok=True)
    if predicts and not (predictions / task.prediction_file_name).is_file():
        (folder / f"{name}.json").unlink(missing_ok=True)
    if results.finished(folder, task, record):
        return False
    with overlap.counting(task, adapter) as counted:
        evaluate_task(adapter, task, candidate.results, predictions if predicts else None)
    record["inputs"] |= {place: digest.hexdigest() for place, digest in adapter.asked.items()}
    left_out = results.left_out(task)
    with alone_in(folder, wait=True):  # another command may score other tasks
        others = results.written_record(folder)
        for part in BY_NAME:
            record[part] = {**others.get(part, {}), **record[part]}
        record["tasks"][name], record["scores"][name] = task.metadata.revision, results.digest(folder, task)
        for part, fact in (("left_out", left_out), ("overlap", counted)):
            record[part].pop(name, None)
            record[part] |= {name: fact} if fact else {}
        results.write_manifest(folder, candidate, record)
    return True


def evaluate_task(adapter: Any, task: Any, folder: Path, predictions: Path | None) -> None:
    """Have mteb score the task. predictions: folder of the model's predictions and items, one file per task."""
    import mteb

    from cli.quiet import quiet
    from evaluation.items import write_items
    from evaluation.mteb_encoder import ENCODE_KWARGS, SharedCache

    reseed(task)
    try:
        with quiet():
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
    from datasets.exceptions import DatasetNotFoundError

    name, main_score = task.metadata.name, task.metadata.main_score
    if isinstance(error, KeyError) and error.args == (main_score,):
        kind = f"which is of type {task.metadata.type}"
        return UserError(f"mteb computes no {main_score} for {name}, {kind}. Correct main_score in its task.json.")
    if not of_the_network(error) and not isinstance(error, DatasetNotFoundError):
        return error
    part = (results.parts(task) or [task])[0]  # an aggregate, as CQADupstack, has no data of its own
    return UserError(
        f"The data set {part.metadata.dataset['path']} of task {name} cannot be fetched from the hub "
        f"({type(error).__name__}). Connect to the network, or fill HF_HOME on a machine that has it; "
        "benchmark=docs and tasks_dir=<folder> need no network."
    )


def reseed(task: Any) -> None:
    """Put the task's random streams at their start.
    mteb does so only when it makes the task: the second model of a command would be clustered on other samples."""
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


def _record(encoder: Any, options: Options, tasks: list[Any], folder: Path) -> dict[str, Any]:
    """Return the record of how scores are made, with that of the scores that are in `folder`."""
    before = results.written_record(folder)
    return {
        "fingerprint": encoder.fingerprint,
        "instructions": options.instructions.mode,
        "instructions_used": options.instructions.used([task.metadata for task in tasks]),
        "max_length": encoder.max_length,
        "mteb": version("mteb"),
        "seed": tasks[0].seed,  # of mteb's draws
        "encoder": encoder.settings,
        **{part: dict(before.get(part, {})) for part in BY_NAME},
    }
