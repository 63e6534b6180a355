"""Train and score designs with several seeds, one run per core: `python study.py seeds=[0,1,2]`."""

import sys

from cli.compose import composed, plain
from cli.errors import UserError, guard
from cli.help import help_screen
from studies.jobs import split_words, study_jobs
from studies.rounds import add_seeds, run


def main() -> None:
    """Compose the commands of a study, refuse what is misspelt, and run them side by side."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(help_screen("study"))
        return
    words = split_words(sys.argv[1:])
    config = plain(composed("study", words.study))
    from evaluation.command import check_words

    check_words(words.evaluate)  # before hours of training, not after them
    if config["seeds"] == "auto":
        add_seeds(config, words)
        return
    if any(word.startswith("max_seeds=") for word in words.study):
        raise UserError("max_seeds= is of seeds=auto alone. Write seeds=auto, or leave it out.")
    run(study_jobs(config, words), config)


if __name__ == "__main__":
    guard(main)
