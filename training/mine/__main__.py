"""`python -m training.mine run=<run folder> data=... out=mined.jsonl`: hard negatives; --help prints the manual."""

from cli.compose import run_command
from cli.errors import guard

if __name__ == "__main__":
    guard(lambda: run_command("mine", "training.mine.command"))
