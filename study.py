"""Train and score designs with several seeds, runs side by side: `python study.py seeds=[0,1,2]`."""

import os
import sys
from itertools import cycle, islice
from typing import Any

from cli.errors import guard


def main() -> None:
    """Compose the commands of a study, refuse what is misspelt, and run them side by side."""
    from cli.compose import composed, help_screen, plain, readable, with_recipe
    from corpora.files import data_files
    from encoders.limits import SHARED_GPU
    from evaluation.command import check_words
    from studies.jobs import design_words, split_words, study_jobs
    from studies.workers import free_memory, run_jobs

    if {"-h", "--help"} & set(sys.argv[1:]):
        print(help_screen("study"))
        return
    words = split_words(sys.argv[1:])
    config = plain(composed("study", words.study))
    jobs = study_jobs(config, words)
    first = design_words(str(config["designs"][0]))  # with its words, since a key may be of its pooler alone
    train = composed("train", readable(with_recipe([*first, *words.train]), several=False))
    check_words(words.evaluate, train.model.path)  # before hours of training, not after them
    if str(train.data.get("reader")).startswith(("corpora.files.", "corpora.classes.file")):
        data_files(plain(train.data)["path"])
    at_once, why = _at_once(config["jobs"], plain(train))
    print(f"{len(jobs)} jobs, {len(at_once)} at a time: {why}.", flush=True)
    if train.accelerator == "cpu" or not free_memory():  # a run of trainer.threads=null would take all cores
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    if len(set(at_once)) < len(at_once):  # each finds what fits into a GPU only where it is alone there
        os.environ[SHARED_GPU] = "true"
    run_jobs(jobs, at_once)


def _at_once(count: int | None, train: dict[str, Any]) -> tuple[list[str], str]:
    """Return the places of jobs, and why so many. count: of jobs=. train: conf/train.yaml as composed."""
    from studies.workers import free_memory, need, places

    devices = train["trainer"]["devices"] or 1  # its own job refuses 0
    gpus = free_memory() if train["accelerator"] != "cpu" else {}
    free = gpus if devices == 1 else {}
    if count:
        return list(islice(cycle(free or [""]), count)), "as jobs= says"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not free:
        fit = 1 if gpus else max(1, cores // devices)  # a run of several processes takes as many GPUs
        return [""] * fit, "one for each core" if devices == 1 else f"of {devices} processes each"
    from encoders.text_encoder import usual_budget
    from training.cost import empty_encoder, parameters  # imports torch

    of_a_run = need(parameters(empty_encoder(train))["base"], usual_budget(train))
    have = f"{sum(free.values()) // 1024} GiB are free on {len(free)} GPU, and there are {cores} cores"
    return places(free, of_a_run, cores), f"about {of_a_run / 1024:.1f} GiB each; {have}"


if __name__ == "__main__":
    guard(main)
