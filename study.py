"""Train and score designs with several seeds, one run per core: `python study.py seeds=[0,1,2]`."""

import sys

from cli.errors import guard


def main() -> None:
    """Compose the commands of a study, refuse what is misspelt, and run them side by side."""
    from cli.compose import composed, help_screen, plain, readable, with_recipe
    from evaluation.command import check_words
    from studies.jobs import split_words, study_jobs
    from studies.workers import run_jobs

    if {"-h", "--help"} & set(sys.argv[1:]):
        print(help_screen("study"))
        return
    words = split_words(sys.argv[1:])
    config = plain(composed("study", words.study))
    jobs = study_jobs(config, words)
    base = composed("train", readable(with_recipe(words.train), several=False)).model.path
    check_words(words.evaluate, base)  # before hours of training, not after them
    run_jobs(jobs, config["jobs"])


if __name__ == "__main__":
    guard(main)
