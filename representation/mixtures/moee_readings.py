"""MoEE's main table and its ablation of tokens and layers, scored by mteb: readings x template x attention.

Li and Zhou, arXiv 2410.10814, tables 3 to 5. All readings of a template and attention come from one forward pass, as of
evaluate.py readings=[...]. Scores lie in mteb's layout below the answer's folder, for `python -m analysis`.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evaluation.candidates import Candidate
from evaluation.readings import ReadingCandidate, read_by
from evaluation.task_data import TYPES
from records.config import composed, plain
from records.limits import real
from representation.answer import Answer
from representation.mixtures.moee_tables import ABLATION, ablation_grid, main_grid, main_readings, score_drawing
from representation.mixtures.moee_vectors import mixtures
from representation.progress import each
from representation.subject import Subject
from representation.texts import Texts

if TYPE_CHECKING:
    from evaluation.benchmarks import TaskSet

Config = dict[str, Any]
LIMITS = {"moee_readings.alpha": real(0)}
FOLDER = "moee_scores"


def answer(subjects: list[Subject], texts: Texts, settings: Config) -> Answer | None:
    """None where no encoder is a mixture of experts."""
    own = settings["moee_readings"]
    found = mixtures(subjects)
    if not found:
        return None
    from representation.command import output_folder

    place = output_folder(settings, subjects[0].candidate.results) / FOLDER
    words = {**main_readings(own["alpha"]), **ABLATION}
    cells = {c.title: (_name(s), c) for s in found for c in cells_of(s.candidate, own, place)}
    frame = scores(list(cells.values()), list(words.values()), texts.task_set, settings)
    over = f"{frame['task'].nunique()} tasks of {texts.benchmark}"
    main = frame[frame["reading"].isin(main_readings(own["alpha"]).values())]
    return Answer(
        "moee_readings",
        "MoEE's readings",
        [main_grid(main, own["alpha"], over), ablation_grid(frame, over)],
        [score_drawing(main, own["alpha"], over)],
        {"moee_readings": frame},
        [
            f"alpha = {own['alpha']:g} of the sum; chosen on docs_dev by python -m evaluation.alpha.",
            "Differences with tests: python -m analysis scores=<out>/moee_scores factors=[pooler,attn,template].",
            "instruct without an instruction is the bare text, closed by EOS, whose state and routing are read; "
            "prompteol reads the prompt's last token.",
        ],
    )


def _name(subject: Subject) -> str:
    """The label without the attention, which the table tells."""
    return subject.label.removesuffix(f", {subject.config['attn']['name']}")


def cells_of(candidate: Candidate, own: Config, place: Path) -> list[Candidate]:
    """Return the candidate under each template and, where it is no run, each attention; their scores go to `place`."""
    config = candidate.manifest["config"]
    attentions = [config["attn"]] if candidate.trained else [_group("attn", name) for name in own["attn"]]
    return [
        _changed(candidate, attn, _group("template", template), place)
        for template in own["templates"]
        for attn in attentions
    ]


def _group(group: str, name: str) -> Config:
    """The file `name` of a folder of conf/. Raises `UserError` for one that there is not."""
    config: Config = plain(composed("evaluate", [f"{group}={name}"]))[group]
    return config


def _changed(candidate: Candidate, attn: Config, template: Config, place: Path) -> Candidate:
    manifest = candidate.manifest
    study = str(manifest["study"]).split(",template=")[0]
    own = {
        "study": study if template["name"] == "instruct" else f"{study},template={template['name']}",
        "attn": attn["name"],
        "config": {**manifest["config"], "attn": attn, "template": template},
    }
    return replace(candidate, manifest={**manifest, **own}, results=place)


def scores(cells: list[tuple[str, Candidate]], words: list[str], task_set: "TaskSet", settings: Config) -> pd.DataFrame:
    """Return one row a (cell, reading, task). What was scored before is not scored again. cells: with their labels."""
    from evaluation.instructions import read_instructions
    from evaluation.plan import make_plan
    from evaluation.quiet import quiet
    from evaluation.scoring import Options, score

    labels = {cell.title: label for label, cell in cells}
    readings = read_by([cell for _, cell in cells], list(dict.fromkeys(words)))
    with quiet():
        plan = make_plan(readings, task_set, settings)
    print(f"Readings to score: {plan.text}", file=sys.stderr, flush=True)
    rows: list[Config] = []
    for reading in each(readings, "scored", settings, lambda r: str(r.title)):
        assert isinstance(reading, ReadingCandidate)
        assert reading.of is not None
        config = reading.manifest["config"]
        options = Options(read_instructions(config["evaluation"]["instructions"]), cache_dir=plan.place.cache_dir)
        outcome = score(reading, task_set.tasks, options)
        about = {
            "encoder": labels[reading.of.title],
            "seed": reading.manifest["seed"],
            "template": config["template"]["name"],
            "attn": config["attn"]["name"],
            "reading": reading.reading,
        }
        rows += [{**about, "type": kind, "task": task, "score": v} for task, (kind, v) in outcome.scores.items()]
    frame = pd.DataFrame(rows)
    order = [kind for kind in TYPES if kind in set(frame["type"])]
    return frame.assign(type=pd.Categorical(frame["type"], order, ordered=True))
