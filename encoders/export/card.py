"""The model card: what the run is, how it is used, and its scores in mteb's model-index form."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from cli.errors import UserError
from encoders.backbone import model_path
from encoders.export.exported import OF_ONE_TOKEN, Exported
from encoders.export.figures import write_figures
from encoders.export.folder import OURS
from records.manifest import SEAL, read_manifest

KINDS = {  # type of task -> the hub's, as mteb has them (TaskMetadata._hf_task_type)
    **dict.fromkeys(["Classification", "MultilabelClassification", "Clustering"], "text-classification"),
    **dict.fromkeys(["PairClassification"], "text-classification"),
    **dict.fromkeys(["Retrieval", "InstructionRetrieval"], "text-retrieval"),
    **dict.fromkeys(["Reranking", "InstructionReranking"], "text-ranking"),
    **{"STS": "sentence-similarity", "Summarization": "summarization", "BitextMining": "translation"},
}


def write_card(exported: Exported, folder: Path, name: str, scores: Path | None) -> None:
    """Write <folder>/README.md. name: of the exported model. scores: see `scored_in`."""
    base = str(exported.config["model"]["path"])
    results = list(eval_results(scored_in(scores, exported))) if scores else []
    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "feature-extraction", *["mteb"] * bool(results)],
        license=base_licence(base),
        base_model=None if Path(model_path(base)).is_dir() else base,
        model_name=name,
        eval_results=results or None,
    )
    parts = [f"---\n{data.to_yaml()}\n---\n\n# {name}", _facts(exported, data.license), _use(exported, name)]
    parts += [_scores(results)] if results else []
    parts.append(write_figures(exported.run, _by_type(results), folder))
    ModelCard("\n\n".join(parts) + "\n").save(folder / "README.md")


def base_licence(base: str) -> str | None:
    """Return the licence that the base's own card names; None where there is no card at hand, or none in it."""
    path = Path(model_path(base))
    try:
        card = ModelCard.load(path / "README.md" if path.is_dir() else base)
    except (OSError, ValueError):
        return None
    return card.data.license


def _facts(exported: Exported, licence: str | None) -> str:
    """The table of design, data and origin."""
    manifest, config = exported.manifest, exported.config
    pooler, lora, template = config["pooler"], config["lora"], exported.text_encoder.tokenizer.template
    settings = ", ".join(f"{key}={value}" for key, value in pooler.items() if key != "name")
    steps = f"{manifest.get('steps')} steps of {config['trainer']['global_batch_size']}"
    rows = {
        "pooling": f"`{pooler['name']}` ({settings})",
        "attention": f"`{exported.pattern}`",
        "template": f"`{template.name}`; at most {exported.text_encoder.max_length} tokens",
        "base": f"`{config['model']['path']}`, sha256 of its weights `{manifest['base_weights_sha256']}`",
        "licence of the base": licence or "not named by the base's own card; it holds for this model too",
        "LoRA": "r={r}, alpha={alpha}".format_map(lora) + (", merged" if exported.merged else ", beside the base"),
        "data": f"`{config['data']['name']}`, sha256 `{manifest['data'].get('sha256')}`",
        "objective": f"`{config['objective']['name']}`, {steps}",
        "run": f"{exported.name}, commit `{manifest['code'].get('commit')}`, manifest sha256 `{manifest[SEAL]}`",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items())])


def _use(exported: Exported, name: str) -> str:
    code = "" if exported.mode else ", trust_remote_code=True"
    lines = ["## Use", "", "```python", "from sentence_transformers import SentenceTransformer", ""]
    lines += [f'model = SentenceTransformer("{name}"{code})  # the path of this folder, or its name on the hub']
    lines += ['vectors = model.encode(["a text", "another one"])', "model.similarity(vectors, vectors)", "```"]
    instructed = exported.text_encoder.tokenizer.template.query.instructed.replace("\n", "\\n")
    lines += ["", f"An instruction goes before the text as a prompt; the run's wording is `{instructed}`."]
    if exported.mode and exported.mode not in OF_ONE_TOKEN and not exported.pooler.pool_instruction:
        lines += ["A prompt is left out of the mean; of one that ends in a space the first token of the text is too."]
    if exported.mode and exported.bidirectional:
        lines += [
            "",
            "Tokens see the whole text (`is_causal` in config.json), which takes transformers >= 5.2: earlier ones",
            "leave the key out of account without a word, and give other vectors.",
        ]
    if not exported.mode:
        lines += [
            "",
            f"Pooling and tokens are code in this folder, `{OURS}.py` (sentence-transformers >= 6, transformers",
        ]
        lines[-1] += " >= 5.23). It runs only with `trust_remote_code=True`: read it first."
    return "\n".join(lines)


def _by_type(results: Iterable[EvalResult]) -> dict[str, list[float]]:
    """Type of task -> its main scores; the results of several splits and subsets of a task count as their mean."""
    of_tasks = defaultdict(list)
    for result in results:
        of_tasks[str(result.task_name), result.dataset_name.partition(" (")[0]].append(result.metric_value)
    of_types = defaultdict(list)
    for (kind, _), values in of_tasks.items():
        of_types[kind].append(fmean(values))
    return dict(sorted(of_types.items()))


def _scores(results: Iterable[EvalResult]) -> str:
    rows = [f"| {kind} | {len(values)} | {fmean(values):.4f} |" for kind, values in _by_type(results).items()]
    head = ["## Scores", "", "Means of mteb's main scores; each one stands in this card's metadata.", ""]
    return "\n".join([*head, "| type | tasks | mean |", "|---|--:|--:|", *rows])


def scored_in(scores: Path, exported: Exported) -> Path:
    """Return the folder of mteb's files with the scores of a run: `scores` itself, or the one in a results folder.

    Raises `UserError` where there is none, or more than one (with other instructions).
    """
    ours = {key: value for key, value in exported.manifest.items() if key != SEAL}
    folders = []
    for file in sorted([*scores.glob("run/manifest.json"), *scores.glob("results/*/*/run/manifest.json")]):
        scored = read_manifest(file.parent)
        if {key: value for key, value in scored.items() if key not in (SEAL, "evaluation")} == ours:
            folders.append(file.parent.parent)
    if len(folders) != 1:
        what = (
            f"several scores of {exported.run}: {', '.join(map(str, folders))}"
            if folders
            else f"no scores of {exported.run}"
        )
        raise UserError(f"scores={scores} has {what}. Give the folder of one revision, which holds <task>.json.")
    return folders[0]


def eval_results(folder: Path) -> Iterator[EvalResult]:
    """Yield each score below `folder`, by split and subset, as mteb's `TaskResult.get_hf_eval_results` has it."""
    tasks: dict[str, Any] = json.loads((folder.parents[2] / "tasks.json").read_text(encoding="utf-8"))
    for file in sorted(folder.glob("*.json")):
        if file.stem not in tasks:
            continue
        result, task = json.loads(file.read_text(encoding="utf-8")), tasks[file.stem]
        is_path = " " not in task["source"]  # of our own tasks tasks.json has a sentence
        for split, entries in result["scores"].items():
            for entry in entries:
                yield EvalResult(
                    task_type=KINDS.get(task["type"], "other"),
                    task_name=task["type"],
                    dataset_type=task["source"] if is_path else f"local/{file.stem}",
                    dataset_name=f"{file.stem} ({entry['hf_subset']})",
                    dataset_config=entry["hf_subset"],
                    dataset_split=split,
                    dataset_revision=result["dataset_revision"],
                    metric_type=task["main_score"],
                    metric_name=task["main_score"],
                    metric_value=entry["main_score"],
                    source_name="MTEB",
                    source_url="https://github.com/embeddings-benchmark/mteb/",
                )
