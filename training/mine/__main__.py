"""`python -m training.mine run=<run folder> data=... out=mined.jsonl`: hard negatives; --help prints the manual."""

from cli.errors import guard
from training.pairs_file import main

if __name__ == "__main__":
    guard(lambda: main("mine"))
