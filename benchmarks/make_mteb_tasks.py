"""Write analysis/reading/mteb_tasks.csv (task, type, main_score) from the installed mteb.

    python benchmarks/make_mteb_tasks.py

Offline: only mteb's metadata is read. Run it again after an upgrade of mteb.
"""

import csv
from pathlib import Path

import mteb

TABLE = Path(__file__).resolve().parent.parent / "analysis" / "reading" / "mteb_tasks.csv"


def main() -> None:
    """List every task of mteb that is text alone; older versions of a task stay in, since old results name them."""
    metadata = [task.metadata for task in mteb.get_tasks(exclude_superseded=False, exclude_aggregate=False)]
    rows = sorted({(m.name, m.type, m.main_score) for m in metadata if set(m.modalities) == {"text"}})
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "type", "main_score"])
        writer.writerows(rows)
    print(f"{len(rows)} tasks of mteb {mteb.__version__} -> {TABLE}")


if __name__ == "__main__":
    main()
