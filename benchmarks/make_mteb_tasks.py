"""Write what analysis must know of mteb's tasks and benchmarks, from the installed mteb, into analysis/scores:

    python benchmarks/make_mteb_tasks.py

mteb_tasks.csv              task, type, main_score
mteb_definitions.json.gz    the splits and subsets of every task, and those that every benchmark scores

Offline: only mteb's metadata is read. Run it again after an upgrade of mteb.
"""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import mteb

FOLDER = Path(__file__).resolve().parent.parent / "analysis" / "scores"
TABLE, DEFINITIONS = FOLDER / "mteb_tasks.csv", FOLDER / "mteb_definitions.json.gz"


def main() -> None:
    """List every task of mteb that is text alone; older versions of a task stay in, since old results name them."""
    every = mteb.get_tasks(exclude_superseded=False, exclude_aggregate=False)
    tasks = [task for task in every if set(task.metadata.modalities) == {"text"}]  # with all splits and subsets
    rows = sorted({(t.metadata.name, t.metadata.type, t.metadata.main_score) for t in tasks})
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "type", "main_score"])
        writer.writerows(rows)
    defined = definitions(tasks)
    text = json.dumps(defined, separators=(",", ":"), sort_keys=True)
    DEFINITIONS.write_bytes(gzip.compress(text.encode(), mtime=0))  # without a date: the same mteb, the same bytes
    print(f"{len(rows)} tasks and {len(defined['benchmarks'])} benchmarks of mteb {mteb.__version__} -> {FOLDER}")


def definitions(tasks: list[Any]) -> dict[str, Any]:
    """Return {"mteb": version, "tasks": {task: material}, "parts": {aggregate: tasks whose mean it is},
    "benchmarks": {name: {"aliases", "tasks"}}}.

    A material is {"splits": [...], "subsets": [...]}; in a benchmark "subsets" is null where it scores all of the
    task's. Benchmarks with a task that is not text alone are left out.
    """
    whole = {task.metadata.name: material(task, task.metadata.eval_splits) for task in tasks}
    benchmarks = {}
    for benchmark in mteb.get_benchmarks():
        if all(set(task.metadata.modalities) == {"text"} for task in benchmark.tasks):
            scored: dict[str, Any] = {task.metadata.name: material(task, task.eval_splits) for task in benchmark.tasks}
            for name, part in scored.items():
                if part["subsets"] == whole.setdefault(name, part)["subsets"]:
                    scored[name] = {**part, "subsets": None}
            benchmarks[benchmark.name] = {"aliases": sorted(benchmark.aliases or ()), "tasks": scored}
    parts = {t.metadata.name: [part.metadata.name for part in t.metadata.tasks] for t in tasks if t.is_aggregate}
    return {"mteb": mteb.__version__, "tasks": whole, "parts": parts, "benchmarks": benchmarks}


def material(task: Any, splits: Any) -> dict[str, list[str]]:
    """Return what is scored of a task; of an aggregate mteb writes one subset, whatever its parts have."""
    return {"splits": list(splits), "subsets": ["default"] if task.is_aggregate else sorted(task.hf_subsets)}


if __name__ == "__main__":
    main()
