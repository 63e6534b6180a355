"""Cost of kills, full disks, damaged files and jumping clocks: `python -m benchmarks.chaos kills=200`."""

import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from random import Random

from benchmarks.arguments import taken_out
from benchmarks.chaos.commands import ROOT, Command, commands, write_inputs
from benchmarks.chaos.process import Process
from benchmarks.chaos.strikes import DAMAGE, FAULTS, KILLS, Outcome, Trials
from benchmarks.page import stamp, table
from cli.errors import UserError, guard, nearest
from records.lock import alone_in

USAGE = """\
What a kill, a full or failing disk, a damaged file or a jumping clock costs: nothing, or it says so.

usage: python -m benchmarks.chaos [kills=200] [seed=0] [only=<command>,...] [work=<folder>]

Training with each objective, evaluation, analysis, export, a sweep and a study, on a base of two layers. After each
disturbance the same command is given again: it ends with the very files of an undisturbed run, or refuses in one line
that names the file. Killed: at a random moment of processor time and before a random write, the process, its parent, or
one of two. Between them as many trials of each other kind as there are tenths of the kills. Linux alone.

work=<folder> keeps each outcome as a line of JSON: the same command, given again, goes on from there. Where the code is
another by then, the undisturbed runs are made again, and the outcomes stand beside the commits that they were made at.
"""
BLOCK, KILLED = 13, 5  # trials of a block, and those of them that kill: twice on average; so 8 others for ten kills
OTHER_KINDS = (*FAULTS, *DAMAGE, "two at once")


def main() -> None:
    """Print one line per trial that lost something, then the table. Raises `UserError` where anything was lost."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(USAGE)
        return
    kills, words = taken_out(sys.argv[1:], "kills", 200)
    seed, words = taken_out(words, "seed", 1)
    given = dict(word.partition("=")[::2] for word in words)
    for key in given.keys() - {"only", "work"}:
        raise UserError(f"There is no argument {key!r}. {nearest(key, ['kills', 'seed', 'only', 'work'])}")
    before, start = stamp(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as scratch:
        work = Path(given.get("work") or scratch).resolve()
        with alone_in(work):
            write_inputs(work)
            every = chosen(commands(work), given.get("only", ""))
            kept = Kept(work / "outcomes.jsonl", f"seed {seed} of {', '.join(command.name for command in every)}")
            try:
                disturb(Trials(work, code()), every, kept, kills)
            finally:
                Process.stop_all()
    outcomes = list(kept.outcomes.values())
    minutes, kills = (time.monotonic() - start) / 60, sum(o.kills for o in outcomes)
    print(f"\n{page(outcomes)}\n\n{kills} kills, seed {seed}, this time {minutes:.0f} minutes. {before}")
    print("Trials by sum of the code:", ", ".join(f"{n} at {c}" for c, n in Counter(kept.codes).items()))
    lost = [o for o in outcomes if o.end == "lost"]
    if lost:
        raise UserError(f"{len(lost)} of {len(outcomes)} trials lost something; the first: {lost[0].said}.")


def code() -> str:
    """Return the first digits of a sha256 over the program's source and configuration, as they are on disk."""
    digest = hashlib.sha256()
    for path in sorted(chain(ROOT.glob("*.py"), *(ROOT.glob(f"[!.]*/**/*.{kind}") for kind in ("py", "yaml")))):
        if "tests" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class Kept:
    """Outcomes by number of the trial, one line of JSON each in a file. of: what was asked; other lines are left."""

    def __init__(self, path: Path, of: str) -> None:
        self.path, self.of = path, of
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        lines = [line for line in lines if line["of"] == of]
        self.outcomes = {line["number"]: Outcome(**line["outcome"]) for line in lines}
        self.codes = [line["code"] for line in lines]

    def add(self, number: int, outcome: Outcome, code: str) -> None:
        """Append an outcome to the file."""
        self.outcomes[number] = outcome
        self.codes.append(code)
        line = {"of": self.of, "number": number, "code": code, "outcome": asdict(outcome)}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def chosen(every: list[Command], names: str) -> list[Command]:
    """Return the commands of these names, and those that they need first. Raises `UserError` for an unknown name."""
    wanted = names.split(",") if names else [command.name for command in every]
    known = {command.name: command for command in every}
    for name in wanted:
        if name not in known:
            raise UserError(f"only={name}: there is no such command. {nearest(name, known)}")
    needed = {known[name].after for name in wanted}
    return [command for command in every if command.name in wanted or command.name in needed]


def disturb(trials: Trials, every: list[Command], kept: Kept, kills: int) -> None:
    """Disturb the commands in turn until there were so many kills; Ctrl-C ends it sooner.

    A trial is a function of its number, so that those whose outcomes are kept need not be made again. Before its first
    trial a command runs undisturbed, after the one whose files it needs.
    """
    number, known = 0, {command.name: command for command in every}
    with suppress(KeyboardInterrupt):
        while (done := sum(o.kills for o in kept.outcomes.values())) < kills:
            if number not in kept.outcomes:
                before = -(-number * KILLED // BLOCK)  # trials that kill; the first one does
                trials.draw = Random(f"{kept.of} {number}")
                turn, place = divmod(before, len(every))
                kills_now = -(-(number + 1) * KILLED // BLOCK) > before
                command = every[place] if kills_now else trials.draw.choice(every)
                for needed in filter(None, (known.get(command.after), command)):
                    trials.undisturbed(needed)
                if kills_now:
                    outcome = trials.kill(command, KILLS[(turn + place) % len(KILLS)], min(3, kills - done))
                else:
                    outcome = trials.strike(command, OTHER_KINDS[(number - before) % len(OTHER_KINDS)])
                kept.add(number, outcome, trials.code)
                _show(outcome)
            number += 1


def _show(outcome: Outcome) -> None:
    how = f"{outcome.command}, {outcome.what}, {outcome.kills} kills"
    print(f"{how}: {outcome.end} {outcome.said}", file=sys.stderr, flush=True)


def page(outcomes: list[Outcome]) -> str:
    """Return the table: one row per kind of disturbance, and one per command that was killed."""
    head = ["disturbed", "trials", "kills", "ended equal", "refused by name", "lost"]
    rows = []
    for kind in dict.fromkeys(o.what for o in outcomes):
        rows.append(_row(kind, [o for o in outcomes if o.what == kind]))
    killed = [o for o in outcomes if o.what in KILLS]
    for name in dict.fromkeys(o.command for o in killed):
        rows.append(_row(f"killed: {name}", [o for o in killed if o.command == name]))
    return table(head, [*rows, _row("**all**", outcomes)])


def _row(name: str, outcomes: list[Outcome]) -> list[str]:
    ends = Counter(outcome.end for outcome in outcomes)
    numbers = [len(outcomes), sum(o.kills for o in outcomes), ends["equal"], ends["refused"], ends["lost"]]
    return [name, *map(str, numbers)]


if __name__ == "__main__":
    guard(main)
