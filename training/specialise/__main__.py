"""`python -m training.specialise data=... out=new.jsonl`: pairs written from seeds; --help prints the manual."""

from cli.errors import guard
from training.command import run_command

if __name__ == "__main__":
    guard(lambda: run_command("specialise", "training.specialise.command"))
