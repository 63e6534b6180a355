"""What kills, full disks, damaged files and jumping clocks cost: `python -m benchmarks.chaos kills=200`."""

import itertools
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.arguments import taken_out
from benchmarks.chaos.commands import Command, commands, write_inputs
from benchmarks.chaos.strikes import DAMAGE, FAULTS, KILLS, Outcome, Trials
from benchmarks.page import stamp, table
from cli.errors import UserError, guard, nearest

USAGE = """\
What a kill, a full or failing disk, a damaged file or a jumping clock costs: nothing, or it says so.

usage: python -m benchmarks.chaos [kills=200] [seed=0] [only=<command>,...] [work=<folder>]

Training with each objective, evaluation, analysis, export, a sweep and a study, on a base of two layers. After each
disturbance the same command is given again: it ends with the very files of an undisturbed run, or refuses in one line
that names the file. Killed: at a random moment of processor time and before a random write, the process, its parent, or
one of two. Between them as many trials of each other kind as there are tenths of the kills. Linux alone.
"""
OTHERS = 8  # trials of other faults for ten kills


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
        work.mkdir(parents=True, exist_ok=True)
        write_inputs(work)
        trials = Trials(work, seed)
        outcomes = disturb(trials, chosen(commands(work), given.get("only", "")), kills)
    minutes = (time.monotonic() - start) / 60
    print(f"\n{page(outcomes)}\n\n{sum(o.kills for o in outcomes)} kills, seed {seed}, {minutes:.0f} minutes. {before}")
    lost = [o for o in outcomes if o.end == "lost"]
    if lost:
        raise UserError(f"{len(lost)} of {len(outcomes)} trials lost something; the first: {lost[0].said}.")


def chosen(every: list[Command], names: str) -> list[Command]:
    """Return the commands of these names, and those that they need first. Raises `UserError` for an unknown name."""
    wanted = names.split(",") if names else [command.name for command in every]
    known = {command.name: command for command in every}
    for name in wanted:
        if name not in known:
            raise UserError(f"only={name}: there is no such command. {nearest(name, known)}")
    needed = {known[name].after for name in wanted}
    return [command for command in every if command.name in wanted or command.name in needed]


def disturb(trials: Trials, every: list[Command], kills: int) -> list[Outcome]:
    """Run each command undisturbed, then disturb them in turn until there were so many kills; Ctrl-C ends it sooner."""
    for command in every:
        trials.undisturbed(command)
    outcomes: list[Outcome] = []
    turns, others = itertools.cycle(every), itertools.cycle((*FAULTS, *DAMAGE, "two at once"))
    with suppress(KeyboardInterrupt):
        while (done := sum(o.kills for o in outcomes)) < kills:
            how = KILLS[sum(o.kills > 0 for o in outcomes) // len(every) % len(KILLS)]
            outcomes.append(trials.kill(next(turns), how, min(3, kills - done)))
            _show(outcomes[-1])
            while sum(not o.kills for o in outcomes) < sum(o.kills for o in outcomes) * OTHERS // 10:
                outcomes.append(trials.strike(trials.draw.choice(every), next(others)))
                _show(outcomes[-1])
    return outcomes


def _show(outcome: Outcome) -> None:
    how = f"{outcome.command}, {outcome.what}, {outcome.kills} kills"
    print(f"{how}: {outcome.end} {outcome.said}", file=sys.stderr, flush=True)


def page(outcomes: list[Outcome]) -> str:
    """Return the table: one row per kind of disturbance, and one per command that was killed."""
    head = ["disturbed", "trials", "kills", "ended equal", "refused by name", "lost"]
    rows = []
    for kind in dict.fromkeys(o.what for o in outcomes):
        rows.append(_row(kind, [o for o in outcomes if o.what == kind]))
    killed = [o for o in outcomes if o.kills]
    for name in dict.fromkeys(o.command for o in killed):
        rows.append(_row(f"killed: {name}", [o for o in killed if o.command == name]))
    return table(head, [*rows, _row("**all**", outcomes)])


def _row(name: str, outcomes: list[Outcome]) -> list[str]:
    ends = Counter(outcome.end for outcome in outcomes)
    numbers = [len(outcomes), sum(o.kills for o in outcomes), ends["equal"], ends["refused"], ends["lost"]]
    return [name, *map(str, numbers)]


if __name__ == "__main__":
    guard(main)
