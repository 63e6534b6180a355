"""One trial: a command is disturbed, then given again; the end is compared with that of an undisturbed run."""

import json
import signal
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from benchmarks.chaos.commands import Command, contents, reset
from benchmarks.chaos.process import Fault, Process, counts
from records.atomic import write_text

KILLS = (
    "SIGKILL",
    "SIGKILL before a write",
    "SIGTERM",
    "SIGINT",
    "SIGKILL of the parent",
    "SIGKILL of one of two",
)
FAULTS = ("no space", "read-only", "rename fails", "clock", "small disk")
DAMAGE = ("cut", "flipped bit")
HANGS = 1200.0  # seconds
LEFT_OUT = {
    "logs",
    "tensorboard",
    "run_settings.jsonl",
    "digests",
    "rates.json",
    "docstrings",
}  # no result comes of them


@dataclass(frozen=True)
class Outcome:
    """The end of a trial: "equal", "refused" by a line that names a file, or "lost". said: what shows it.

    kills: how often a process that still ran was killed.
    """

    command: str
    what: str
    end: str
    said: str
    kills: int = 0


@dataclass(frozen=True)
class Usual:
    """An undisturbed run. writes, renames, looks: how many it made. bytes: what its files take."""

    files: dict[str, str]
    processor_seconds: float
    writes: int
    renames: int
    looks: int
    bytes: int


class Trials:
    """Trials in the folder `work`. draw: what decides a trial. `usual`: of the commands that ran undisturbed.

    code: names the state of the code; what an undisturbed run left is used again where it is the same.
    """

    def __init__(self, work: Path, code: str) -> None:
        self.work, self.place, self.out, self.code = work, work / "here", work / "output.txt", code
        self.draw = Random(0)
        self.usual: dict[str, Usual] = {}

    def undisturbed(self, command: Command) -> None:
        """Run a command to its end, unless this code has in this folder. Raises `RuntimeError` where it fails."""
        if command.name in self.usual:
            return
        kept = self.work / f"usual {command.name}.json"
        if kept.exists() and (record := json.loads(kept.read_text()))["code"] == self.code:
            self.usual[command.name] = Usual(**record["usual"])
            return
        self._reset(command)
        process, seconds = self._start(command), 0.0
        while process.wait(0.05) is None:
            seconds = max(seconds, process.used())
        if process.wait() != 0:
            raise RuntimeError(f"{command.name} failed undisturbed: {self._said()}")
        done, files = counts(self.out), contents(self.place / command.results)
        size = sum(path.stat().st_size for path in self.place.rglob("*") if path.is_file())
        self.usual[command.name] = Usual(files, seconds, done["writes"], done["renames"], done["looks"], size)
        reset(self.work / f"after {command.name}", self.place)
        write_text(kept, json.dumps({"code": self.code, "usual": asdict(self.usual[command.name])}))

    def kill(self, command: Command, how: str, most: int) -> Outcome:
        """Kill a command up to `most` times, each time given again; then let it end."""
        usual, kills = self.usual[command.name], 0
        self._reset(command)
        for _ in range(self.draw.randint(1, most)):
            fault, above = Fault("", str(self.place)), how == "SIGKILL of the parent"
            if how == "SIGKILL before a write":
                fault = Fault("killed", str(self.place), self.draw.randint(1, max(1, usual.writes + usual.renames)))
            process = self._start(command, fault, above)
            if how != "SIGKILL before a write":
                process.wait_until(self.draw.uniform(0.02, 1.0) * usual.processor_seconds)
                number = getattr(signal, how.split(maxsplit=1)[0])
                others = process.others() if how == "SIGKILL of one of two" else []
                kills += process.send(number, self.draw.choice(others) if others else None)
            if above:  # what it started lives on; the same command beside it is refused, or does the same
                self._start(command).wait(HANGS)
            if process.wait(HANGS) is None or not process.wait_for_others():
                Process.stop_all()
                return Outcome(command.name, how, "lost", "a process of it went on", kills)
            kills += how == "SIGKILL before a write" and process.wait() == -signal.SIGKILL
        return self._end(command, how, kills)

    def strike(self, command: Command, kind: str) -> Outcome:
        """Disturb a command in another way than by a kill, mend what was wrong, and give it again."""
        if kind == "two at once":
            return self._twice(command, kind)
        if kind in DAMAGE:
            return self._damaged(command, kind)
        usual = self.usual[command.name]
        self._reset(command)
        least = {"rename fails": usual.renames, "clock": usual.looks}.get(kind, usual.writes)
        fault = Fault(kind, str(self.place), self.draw.randint(1, max(1, least)))
        if kind == "small disk":
            with_disk = self._on_small_disk(command, usual)
            return with_disk or Outcome(command.name, kind, "equal", "no small disk can be mounted here")
        self._start(command, fault).wait(HANGS)
        output = self._said()
        if "Traceback" in output:
            return Outcome(command.name, kind, "lost", f"a trace, and no line of what is wrong: {output[-300:]}")
        return self._end(command, kind)

    def _twice(self, command: Command, kind: str) -> Outcome:
        self._reset(command)
        first, second = self._start(command), self._start(command)
        codes = [process.wait(HANGS) for process in (first, second)]
        if "Traceback" in self._said():
            return Outcome(command.name, kind, "lost", f"{codes}: {self._said()[-300:]}")
        return self._end(command, kind)

    def _damaged(self, command: Command, kind: str) -> Outcome:
        """Damage one file of a run that was stopped half-way, or of a finished one; of an export, of what it reads."""
        self._reset(command)
        if self.draw.random() < 0.5:
            usual = self.usual[command.name]
            process = self._start(command)
            process.wait_until(self.draw.uniform(0.5, 1.0) * usual.processor_seconds)
            process.send(signal.SIGKILL)
            process.wait(HANGS)
            process.wait_for_others()
        else:
            again = command.name if command.name != "export" else command.after  # which refuses a folder that is there
            reset(self.place, self.work / f"after {again}")
        files = [p for p in sorted(self.place.rglob("*")) if p.is_file() and not LEFT_OUT & {*p.parts}]
        files = [p for p in files if p.stat().st_size and not any(part.startswith(".") for part in p.parts)]
        if not files:
            return self._end(command, kind)
        file = self.draw.choice(files)
        whole = file.read_bytes()
        spot = self.draw.randrange(len(whole))
        flipped = whole[:spot] + bytes([whole[spot] ^ (1 << self.draw.randrange(8))]) + whole[spot + 1 :]
        file.write_bytes(whole[:spot] if kind == "cut" else flipped)
        return self._end(command, kind, damaged=file)

    def _on_small_disk(self, command: Command, usual: Usual) -> Outcome | None:
        """Give the command a file system of random size, enlarge it, give the command again."""
        size = max(16, self.draw.randint(0, usual.bytes) // 1024)
        before = self.work / f"after {command.after}" if command.after else None
        if before:
            size += sum(p.stat().st_size for p in before.rglob("*") if p.is_file()) // 1024 + 400
        self.place.mkdir(exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(self.place)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return None
        try:
            self._reset(command)
            self._start(command).wait(HANGS)
            if "Traceback" in self._said():
                return Outcome(command.name, "small disk", "lost", f"{size} KiB: {self._said()[-300:]}")
            grow = ["mount", "-o", "remount,size=1g", str(self.place)]
            subprocess.run(grow, check=True)
            return self._end(command, "small disk")
        finally:
            subprocess.run(["umount", "-l", str(self.place)], check=True)

    def _end(self, command: Command, what: str, kills: int = 0, damaged: Path | None = None) -> Outcome:
        """Give the command again, undisturbed, and tell how that ends."""
        self.out.unlink(missing_ok=True)
        process = self._start(command)
        code, output = process.wait(HANGS), self._said()
        if code is None:
            Process.stop_all()
            return Outcome(command.name, what, "lost", "it hangs", kills)
        named = str(damaged.relative_to(self.place)) if damaged else ""
        files, usual = contents(self.place / command.results), self.usual[command.name].files
        other = sorted(name for name in files.keys() | usual.keys() if files.get(name) != usual.get(name))
        if code == 0 or not (damaged or other):  # an export that is there is refused, and whole
            if not other:
                return Outcome(command.name, what, "equal", named, kills)
            return Outcome(command.name, what, "lost", f"{named} other than undisturbed: {', '.join(other[:4])}", kills)
        lines = [line for line in output.splitlines() if line.startswith(("error:", "skipped:"))]
        parts = (damaged, *damaged.parents[:3]) if damaged else ()
        one = code == 2 and "Traceback" not in output and lines
        if one and (not damaged or any(str(part) in line for part in parts for line in lines)):
            return Outcome(command.name, what, "refused", f"{named}: {lines[0]}", kills)
        return Outcome(command.name, what, "lost", f"{named}, exit code {code}: {output[-400:]}", kills)

    def _reset(self, command: Command) -> None:
        reset(self.place, self.work / f"after {command.after}" if command.after else None)
        self.out.unlink(missing_ok=True)

    def _start(self, command: Command, fault: Fault | None = None, above: bool = False) -> Process:
        words = [word.replace("{place}", str(self.place)) for word in command.words]
        return Process(words, self.place, self.out, fault or Fault("", str(self.place)), above)

    def _said(self) -> str:
        return self.out.read_text(errors="replace") if self.out.exists() else ""
