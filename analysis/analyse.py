"""Scores -> one result, which every rendering reads."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.by_type import seed_means, type_means
from analysis.control.rule import Control, Footnote, require
from analysis.factorial.crossings import factor_table
from analysis.factorial.effects import Factorial, factorial_effects
from analysis.manifests.compared_keys import check_factors
from analysis.manifests.designs import Design, ScoreSource
from analysis.manifests.read_manifest import check_versions
from analysis.pairs import ALL, compare_pairs
from analysis.questions.odd_cells import odd_scores
from analysis.questions.question import Answer, Material, answers
from analysis.scores.choose import check_every_seed, check_seeds, choose_control, choose_designs, keep_seeds, keep_tasks
from analysis.scores.definitions import Benchmark, benchmark_of, parts_of
from analysis.scores.long_table import Scores, join, normalise
from analysis.scores.material import check_alike, left_out_notes, material_notes, within, without_holes, without_parts
from analysis.scores.missing import complete, policy_for
from analysis.scores.task_types import read_types, sort_types
from analysis.settings import Settings
from analysis.tables.notes import all_notes
from analysis.training_gain import training_gain, twin_of
from analysis.verdict import verdict, verdict_without
from cli.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """All that the tables show. Scores are between -1 and 1; designs are in config order everywhere."""

    settings: Settings
    designs: dict[str, Design]  # label -> design, those compared
    types: dict[str, list[str]]  # type -> its tasks
    frame: "pd.DataFrame"  # the long table that was used
    matrix: "pd.DataFrame"  # tasks x designs, mean over seeds
    means: "pd.DataFrame"  # designs x types and means
    gain: "pd.DataFrame | None"  # (design, before | after | gain) x types and means
    pairs: "pd.DataFrame"  # one row a (type, pair)
    notes: list[str]
    verdict: str
    effects: list[Factorial] = field(default_factory=list)  # one a complete crossing of factors, at most two
    sections: list[Answer] = field(default_factory=list)  # further questions: analysis/questions
    footnotes: list[Footnote] = field(default_factory=list)  # differences beside the factors that `allow=` let through
    control: str = ""  # label of the design that `against=` names
    untrained: dict[str, Design] = field(default_factory=dict)  # the references whose scores `gain` uses
    control_notes: list[str] = field(default_factory=list)  # what the control rule noted; also among `notes`


def analyse(settings: Settings) -> Result:
    """Read, check, choose, test. Raises UserError for anything in the input that the user can mend."""
    own_types = read_types(settings.task_types) if settings.task_types else {}
    benchmark = benchmark_of(settings.benchmark) if settings.benchmark else None
    readings = [within(_read(path, settings, own_types, benchmark), benchmark) for path in settings.scores]
    check_seeds(readings, settings.seeds)
    readings = [normalise(reading, settings.scale) for reading in readings if reading.rows]
    if benchmark and not readings:
        raise UserError(f"No score is of a task of {benchmark.name}. Change benchmark= or scores=, or leave it out.")
    scores = join(readings, own_types, settings.allow)
    designs = choose_designs(scores.designs, settings.models, settings.order)
    if "seed" not in settings.allow:
        check_every_seed(scores.frame, designs, settings.seeds)
    read = kept = keep_tasks(scores, settings.types, settings.tasks).frame
    policy = policy_for(settings.missing, (scores.designs[label] for label in designs))
    kept = kept[kept["design"].isin(_with_twins(designs, scores.designs))]
    kept, hole_notes = without_holes(kept, scores.rows, policy)
    kept, part_notes = without_parts(kept, designs)
    whole = complete(kept, designs, policy)
    control = choose_control(scores.designs, designs, settings.against, whole.designs)
    designs, tasks = whole.designs, whole.tasks
    scored = {part for task in kept["task"].unique() for part in (task, *parts_of(task))}
    rule = _controlled(scores, designs, scored, settings)
    types = _tasks_by_type(kept, tasks, settings.types)
    matrix = seed_means(kept, designs, tasks)
    gain, gain_notes = training_gain(
        kept, scores.designs, designs, types, zeros=settings.zeros, decimals=settings.decimals
    )
    shown = {*designs, *_twins(gain, scores.designs)}
    frame = kept[kept["design"].isin(shown) & kept["task"].isin(tasks)]
    material = [scores.rows[position] for position in frame.index]
    check_alike(material)
    blocks = types if len(types) == 1 else {**types, ALL: tasks}
    pairs = compare_pairs(matrix, blocks, settings, control)
    named = {label: scores.designs[label] for label in designs}
    notes = [*scores.notes, *material_notes(material, benchmark), *left_out_notes(named.values(), tasks), *rule.notes]
    notes += [*hole_notes, *part_notes, *whole.notes, *gain_notes, *all_notes(frame, designs, pairs, settings)]
    effects, effect_notes = factorial_effects(matrix, factor_table(named), blocks, settings)
    means = type_means(matrix, types)
    own = frame[frame["design"].isin(designs)]
    odd = odd_scores(_like(designs, read, scores.designs), designs, tasks)
    sections = answers(Material(settings, named, control, types, blocks, own, matrix, pairs, odd))
    line = verdict(matrix, pairs, settings, control, sections)
    line += verdict_without(list(dict.fromkeys(odd["task"])), matrix, blocks, settings, control)
    notes += [*effect_notes, *(note for section in sections for note in section.notes)]
    references = {label: scores.designs[label] for label in shown if label not in named}
    return Result(
        settings, named, types, frame, matrix, means, gain, pairs, notes, line, effects, sections, rule.footnotes,
        control, references, rule.notes,
    )  # fmt: skip


def _like(compared: list[str], read: "pd.DataFrame", designs: dict[str, Design]) -> "pd.DataFrame":
    """The scores read, compared or not, of designs that are trained as those compared are (foreign ones: all)."""
    states = {designs[label].trained for label in compared}
    return read[read["design"].isin({label for label, design in designs.items() if design.trained in states})]


def _controlled(scores: Scores, compared: list[str], tasks: set[str], settings: Settings) -> Control:
    """Hold the manifests of what the tables show, untrained references included, against the control rule."""
    shown = {label: scores.designs[label] for label in _with_twins(compared, scores.designs)}
    runs = [run for design in shown.values() for run in design.runs]
    check_versions(runs)
    check_factors(settings.factors, (run.manifest for run in runs))
    return require(shown, settings.factors, settings.allow, tasks)


def _with_twins(compared: list[str], designs: dict[str, Design]) -> list[str]:
    """The designs and the untrained references of those that have one."""
    return list(dict.fromkeys([*compared, *filter(None, (twin_of(label, designs) for label in compared))]))


def _read(path: Path, settings: Settings, own_types: dict[str, str], benchmark: Benchmark | None) -> ScoreSource:
    if path.is_dir():
        from analysis.scores.mteb_results import read_results

        return read_results(path, settings, benchmark)
    from analysis.scores.csv_table import read_csv

    beside = path.parent / "tasks.json"
    types = read_types(beside) if beside.is_file() else {}
    reading = read_csv(path, types | own_types)
    reading.types |= types
    return keep_seeds(reading, settings.seeds)


def _tasks_by_type(frame: "pd.DataFrame", tasks: list[str], wanted: tuple[str, ...]) -> dict[str, list[str]]:
    kind = dict(zip(frame["task"], frame["type"], strict=True))
    order = sort_types({kind[task] for task in tasks}, wanted)
    return {name: [task for task in tasks if kind[task] == name] for name in order}


def _twins(gain: "pd.DataFrame | None", designs: dict[str, Design]) -> set[str]:
    """The untrained references whose scores the before-and-after table uses."""
    rows = [] if gain is None else list(dict.fromkeys(gain.index.get_level_values("design")))
    return {twin for twin in (twin_of(label, designs) for label in rows) if twin}
