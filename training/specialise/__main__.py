"""`python -m training.specialise data=... out=new.jsonl`: pairs written from seeds; --help prints the manual."""

from cli.errors import guard
from training.pairs_file import main

if __name__ == "__main__":
    guard(lambda: main("specialise"))
