"""Train and score designs with several seeds, one run per core: `python study.py seeds=[0,1,2]`."""

import os
import shlex
import sys

from cli.errors import UserError, guard

# Imported once, for all runs: what train.py and evaluate.py would each take seconds for.
MODULES = ("torch", "peft", "transformers.models.llama.modeling_llama", "training.run", "mteb", "evaluation.scoring")


def main() -> None:
    """Compose the commands of a study, refuse what is misspelt, and run them side by side."""
    from cli.compose import composed, plain
    from cli.help import help_screen
    from studies.jobs import split_words, study_jobs
    from studies.workers import Progress, cores, run_jobs

    if {"-h", "--help"} & set(sys.argv[1:]):
        print(help_screen("study"))
        return
    words = split_words(sys.argv[1:])
    config = plain(composed("study", words.study))
    jobs = study_jobs(config, words)
    progress = Progress(jobs, config["jobs"] or cores())
    print(progress.plan, flush=True)
    if config["plan"]:
        print(*(shlex.join(["python", *job.words]) for job in jobs), sep="\n")
        return
    os.environ.setdefault("TQDM_DISABLE", "1")  # mteb's own bars; tqdm reads it when it is first imported
    codes = run_jobs(jobs, progress.count, MODULES, progress.ended)
    unfinished = [job.name for job in jobs if codes.get(job.name)]
    if unfinished:
        raise UserError(
            f"{len(unfinished)} of {len(jobs)} jobs failed ({', '.join(unfinished[:4])}); their errors stand above. "
            "What is finished is kept: the same command goes on."
        )


if __name__ == "__main__":
    guard(main)
