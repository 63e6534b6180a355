"""`python -m training.mine run=<run folder> data=... out=mined.jsonl`: hard negatives; --help prints the manual."""

from cli.errors import guard
from training.command import run_command

if __name__ == "__main__":
    guard(lambda: run_command("mine", "training.mine.command"))
