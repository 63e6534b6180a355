"""`tasks_dir=<folder>`: one task a sub-folder, described by its task.json."""

import json
from pathlib import Path
from typing import Any

from evaluation.folder_files import number
from evaluation.folder_types import READERS
from evaluation.task_data import TYPES, TaskData
from records.errors import UserError, nearest

MAIN_SCORE = {
    "Retrieval": "ndcg_at_10",
    "Reranking": "map_at_1000",
    "Classification": "accuracy",
    "Clustering": "v_measure",
    "PairClassification": "max_ap",
    "STS": "cosine_spearman",
    "Summarization": "cosine_spearman",
}
NO_NAMES = ("model_meta", "manifest", "tasks", "experiment_params")  # .json: lie beside scores and are none
EMBEDDED = 2048  # documents of a clustering task that are embedded, drawn by mteb's seed: its own choice for v2 tasks


def folder_tasks(root: Path, only: list[str] | None = None) -> list[TaskData]:
    """Read the tasks below `root` (or the one that `root` itself is), by name; `only` names those wanted.

    Raises `UserError` with file and line for what is malformed.
    """
    if not root.is_dir():
        raise UserError(f"There is no folder {root}. Give tasks_dir=<folder of task folders>.")
    folders = [root] if (root / "task.json").is_file() else sorted(p.parent for p in root.glob("*/task.json"))
    if not folders:
        raise UserError(f"No task.json in {root} or one level below. Each task folder needs one (name, type).")
    described = {folder: _description(folder / "task.json") for folder in folders}
    names = [about["name"] for about in described.values()]
    double = next((n for n in names if names.count(n) > 1), None)
    if double:
        raise UserError(f"Two folders in {root} call themselves '{double}'. Rename one in its task.json.")
    for name in only or ():
        if name not in names:
            raise UserError(f"There is no task '{name}' in {root}. {nearest(name, names)}")
    return [_task(folder, about) for folder, about in described.items() if not only or about["name"] in only]


def _description(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        where = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UserError(f"{path}{where}: no JSON. Mend the file.") from error
    if not isinstance(about, dict):
        raise UserError(f"{path} must hold an object with name and type.")
    for key in ("name", "type"):
        if not isinstance(about.get(key), str) or not about[key]:
            raise UserError(f"{path}: the key '{key}' is missing.")
    if about["type"] not in TYPES:
        raise UserError(f"{path}: there is no type '{about['type']}'. {nearest(about['type'], TYPES)}")
    if "/" in about["name"] or about["name"] in NO_NAMES:
        raise UserError(f"{path}: the name '{about['name']}' becomes that of a file of scores, and cannot. Change it.")
    main_score, prompt = about.get("main_score"), about.get("prompt")
    if main_score is not None and not isinstance(main_score, str):
        raise UserError(f"{path}: main_score must be the name of a measure, such as {MAIN_SCORE[about['type']]}.")
    sides = prompt if isinstance(prompt, dict) else {"query": prompt or ""}
    if not set(sides) <= {"query", "document"} or not all(isinstance(said, str) for said in sides.values()):
        raise UserError(f'{path}: prompt must be a sentence, or {{"query": "...", "document": "..."}}.')
    return about


def _task(folder: Path, about: dict[str, Any]) -> TaskData:
    kind = about["type"]
    content = READERS[kind](folder)
    left_out = {what: count for what, count in content.pop("left_out", {}).items() if count}
    settings: dict[str, Any] = {}
    if kind in ("STS", "Summarization"):
        settings = _grades(folder / "task.json", about)
    if kind == "Clustering":
        embedded = min(EMBEDDED, len(content["test"]["labels"]))
        settings = {
            "max_fraction_of_documents_to_embed": None,  # mteb's default, 4 %, is meant for huge data sets
            "max_document_to_embed": embedded,
            "max_documents_per_cluster": embedded,  # of each bootstrap
        }
    return TaskData(
        name=about["name"],
        type=kind,
        main_score=about.get("main_score") or MAIN_SCORE[kind],
        source=str(about.get("source") or folder),
        content=content,
        prompt=about.get("prompt"),
        settings=settings,
        left_out=left_out,
    )


def _grades(path: Path, about: dict[str, Any]) -> dict[str, float]:
    """The ends of the scale of graded tasks; mteb's default is 0 to 5."""
    low, high = about.get("min_score", 0), about.get("max_score", 5)
    if number(low) or number(high) or low >= high:
        raise UserError(f"{path}: min_score and max_score must be numbers, the first the smaller.")
    return {"min_score": low, "max_score": high}
