"""The jobs of a study run once, or again with more seeds until their scores say enough."""

import os
import shlex
from collections.abc import Sequence
from itertools import pairwise

from cli.errors import UserError
from studies.jobs import Config, Words, compared, study_jobs
from studies.workers import Job, Progress, cores, finished_jobs, run_jobs

# Imported once, for all runs: what train.py and evaluate.py would each take seconds for.
MODULES = ("torch", "peft", "transformers.models.llama.modeling_llama", "training.run", "mteb", "evaluation.scoring")


def run(jobs: Sequence[Job], config: Config) -> None:
    """Run the jobs side by side that are not finished, or list all. Raises `UserError` where some fail."""
    if config["plan"]:
        print(Progress(jobs, config["jobs"] or cores()).plan)
        print(*(shlex.join(["python", *job.words]) for job in jobs), sep="\n")
        return
    os.environ.setdefault("TQDM_DISABLE", "1")  # mteb's own bars; tqdm reads it when it is first imported
    finished = finished_jobs(jobs, MODULES)
    if finished:
        print(f"{len(finished)} of {len(jobs)} jobs are finished, as their files say.", flush=True)
    jobs = [job for job in jobs if job.name not in finished]
    if not jobs:
        return
    progress = Progress(jobs, config["jobs"] or cores())
    print(progress.plan, flush=True)
    codes = run_jobs(jobs, progress.count, MODULES, progress.ended)
    unfinished = [job.name for job in jobs if codes.get(job.name)]
    if unfinished:
        raise UserError(
            f"{len(unfinished)} of {len(jobs)} jobs failed ({', '.join(unfinished[:4])}); their errors stand above. "
            "What is finished is kept: the same command goes on."
        )


def add_seeds(config: Config, words: Words) -> None:
    """Add seeds until each design is told from the first one or equivalent to it, or `max_seeds` are spent.

    What is told depends on the scores alone, so the same command takes the same looks again, and goes on.
    """

    def jobs(of: Sequence[str], first: int, last: int) -> list[Job]:
        return study_jobs({**config, "designs": of, "seeds": list(range(first, last))}, words)

    study_jobs(config, words)  # what is misspelt is refused before anything slow is imported
    from analysis.looks import Looks, scores_of_look
    from analysis.settings import Settings

    designs = list(dict.fromkeys(map(str, config["designs"])))
    if len(designs) < 2:
        raise UserError(f"seeds=auto compares designs with the first one, and designs= names {designs[0]} alone.")
    comparison = Looks(designs, config["max_seeds"])
    steps = list(pairwise((0, *comparison.looks)))
    counts = [len(jobs(designs, *step)) for step in steps]
    looks = ", ".join(map(str, comparison.looks))
    print(f"Looks at {looks} seeds of {len(designs)} designs: {counts[0]} jobs at least, {sum(counts)} at most.")
    for first, last in steps:
        of = [designs[0], *comparison.open]
        run(jobs(of, first, last), config)
        if config["plan"]:
            return
        read = Settings(**compared(of, words), seeds=tuple(map(str, range(last))))
        print(comparison.look(scores_of_look(read)), flush=True)
        files = comparison.write(read.scores[0])
        if not comparison.open:
            break
    print("\n  ".join(["Files:", *map(str, files)]))
