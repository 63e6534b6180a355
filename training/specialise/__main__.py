"""`python -m training.specialise data=... out=new.jsonl`: pairs written from seeds; --help prints the manual."""

from cli.compose import run_command
from cli.errors import guard

if __name__ == "__main__":
    guard(lambda: run_command("specialise", "training.specialise.command"))
