"""What a design is called in the tables, and which runs make one design."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from analysis.manifests.compared_keys import NAMED
from analysis.manifests.designs import NOTHING, Design
from analysis.manifests.differences import run_differences
from analysis.names import listed as enumerated
from records.identity import below


def labels(designs: Iterable[Design], allow: tuple[str, ...] = ()) -> dict[str, str]:
    """Return model -> label: `<pooler>-<attn>` for our own, and ` <key>=<value>` for further factors that vary, unless
    the value is that of most designs (`usual_note` says so).

    Models of several studies with the same factors get one label where their seeds add up to one design; otherwise
    every model keeps its full name. allow: keys in which the seeds of one design may differ.
    """
    listed = list(designs)
    further, usual = _further([design for design in listed if design.pooler]), usual_values(listed)
    groups: dict[str, list[Design]] = defaultdict(list)
    for design in listed:
        groups[design.named(further, usual)].append(design)
    clash = any(len(own) > 1 and own[0].pooler and not _one_design(own, allow) for own in groups.values())
    return {d.model: d.model if clash and d.pooler else name for name, own in groups.items() for d in own}


def usual_values(designs: Iterable[Design]) -> dict[str, str]:
    """Return factor -> the value that more than half of our own designs have, so that names need not say it."""
    own = [design for design in designs if design.pooler]
    shown = [design for design in own if design.trained] or own
    found = {}
    for key in _further(own):
        value, count = Counter(design.factors.get(key, "absent") for design in shown).most_common(1)[0]
        if 2 * count > len(shown):
            found[key] = value
    return found


def usual_note(designs: Iterable[Design]) -> list[str]:
    """Return the sentence that says what names leave out; none where they leave out nothing but what is not there."""
    said = [f"{key} is {value}" for key, value in usual_values(designs).items() if value not in NOTHING]
    return [f"Where a name does not say otherwise, {enumerated(said)}."] if said else []


def gathered(designs: dict[str, Design], label: dict[str, str]) -> dict[str, Design]:
    """Return label -> design, with the runs of all models of that label; models in the order of `designs`."""
    found: dict[str, Design] = {}
    for model, design in designs.items():
        held = found.get(label[model])
        joined = design if held is None else replace(held, runs=(*held.runs, *design.runs), also=(*held.also, model))
        found[label[model]] = joined
    return found


def names_of(label: str, design: Design) -> set[str]:
    """Return every name by which `models=` may call a design; a bracket-free one for the untrained."""
    return {label, design.model, *design.also, label.replace(" (untrained)", "-untrained")}


def _further(designs: list[Design]) -> dict[str, str]:
    """Return key -> word for the factors, pooler and attn apart, in which designs differ: lora.r -> r."""
    keys = list(dict.fromkeys(key for design in designs for key in design.factors if key not in NAMED))
    shown = [design for design in designs if design.trained] or designs
    varying = [key for key in keys if len({d.factors.get(key) for d in shown}) > 1]
    last = Counter(key.rpartition(".")[2] for key in varying)
    return {key: word if last[word := key.rpartition(".")[2]] == 1 else key for key in varying}


def _one_design(designs: list[Design], allow: tuple[str, ...]) -> bool:
    """Whether the models have other seeds each, and differ in nothing else."""
    seeds = [run.seed for design in designs for run in design.runs]
    if len(set(seeds)) < len(seeds) or not all(design.runs for design in designs):
        return False
    pairs = combinations([design.runs[0] for design in designs], 2)
    return all(below(key, allow) for one, other in pairs for key in run_differences(one, other))
