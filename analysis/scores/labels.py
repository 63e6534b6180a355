"""Names of the designs in the tables, and their order."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from analysis.manifests.compared_keys import NAMED, STARTS
from analysis.manifests.designs import NOTHING, UNTRAINED, Design
from analysis.names import listed


def labelled(designs: Mapping[str, Design]) -> dict[str, Design]:
    """Return label -> design, in the order given. designs: by model.

    A label is `<pooler>-<attn>` for our own, and ` <key>=<value>` for further factors that vary, unless the value is
    that of most designs (`usual_note` says so). Where two of ours would have one label, as two studies of the same
    designs, every model keeps its full name.
    """
    every = list(designs.values())
    further, usual = _further([design for design in every if design.pooler]), _usual_values(every)
    runs = _short_runs(every)
    names = {model: _name(design, further, usual, runs) for model, design in designs.items()}
    count = Counter(names.values())
    if any(count[names[model]] > 1 for model, design in designs.items() if design.pooler):
        names |= {model: model for model, design in designs.items() if design.pooler}
    return {names[model]: design for model, design in designs.items()}


def _name(design: Design, further: dict[str, str], usual: dict[str, str], runs: dict[str, str]) -> str:
    """Return `<pooler>-<attn>`, or the model's own name, with the values of further factors: `eos-bi tokens=mean`.

    A factor that a design lacks, such as lineage=none, is not named. further: key -> its word in the table;
    usual: key -> the value that needs no naming; runs: a value that names runs -> what tells them apart.
    """
    name = f"{design.pooler}-{design.attn}" if design.pooler else design.model
    for key, word in further.items():
        value = design.factors.get(key, "absent")
        name += "" if value in NOTHING or value == usual.get(key) else f" {word}={runs.get(value, value)}"
    return name if design.trained or name.endswith(UNTRAINED) else f"{name}{UNTRAINED}"


def _usual_values(designs: Iterable[Design]) -> dict[str, str]:
    """Return factor -> the value that more than half of our own designs have, so that names need not say it."""
    ours = [design for design in designs if design.pooler]
    shown = [design for design in ours if design.trained] or ours
    usual = {}
    for key in _further(ours):
        value, count = Counter(design.factors.get(key, "absent") for design in shown).most_common(1)[0]
        if 2 * count > len(shown):
            usual[key] = value
    return usual


def usual_note(designs: Iterable[Design]) -> list[str]:
    """Return the sentence that says what names leave out; none where they leave out nothing but what is not there."""
    values = [f"{key} is {value}" for key, value in _usual_values(designs).items() if value not in NOTHING]
    return [f"Where a name does not say otherwise, {listed(values)}."] if values else []


def _short_runs(designs: Iterable[Design]) -> dict[str, str]:
    """Return value -> shorter value for the factors whose values are runs, such as `adapter.experts`.

    Of the words of a run's folder those stay in which the runs of these designs differ:
    `x+mixture-retrieval/mean-bi,x+mixture-clustering/mean-bi` -> `mixture-retrieval,mixture-clustering`.
    Runs that could no longer be told apart, and a single one, keep their names.
    """
    values = {design.factors[key] for design in designs for key in STARTS if "/" in design.factors.get(key, "")}
    words = {run: run.replace("/", "+").split("+") for value in values for run in value.split(",")}
    shared = set.intersection(*map(set, words.values())) if words else set()
    short = {run: "+".join(word for word in of_run if word not in shared) for run, of_run in words.items()}
    if not all(short.values()) or len(set(short.values())) < len(short):
        return {}
    return {value: ",".join(short[run] for run in value.split(",")) for value in values}


def names_of(label: str, design: Design) -> set[str]:
    """Return every name by which `models=` may call a design; a bracket-free one for the untrained."""
    return {label, design.model, label.replace(UNTRAINED, "-untrained")}


def _further(designs: list[Design]) -> dict[str, str]:
    """Return key -> word for the factors, pooler and attn apart, in which designs differ: lora.r -> r."""
    keys = list(dict.fromkeys(key for design in designs for key in design.factors if key not in NAMED))
    shown = [design for design in designs if design.trained] or designs
    varying = [key for key in keys if len({d.factors.get(key) for d in shown}) > 1]
    last = Counter(key.rpartition(".")[2] for key in varying)
    return {key: word if last[word := key.rpartition(".")[2]] == 1 else key for key in varying}


def config_order(designs: dict[str, Design], order: dict[str, list[str]]) -> list[str]:
    """Return the labels: by (pooler, attn) as `order` lists them, then those of no known pooler in file order.

    Further factors follow by value, numbers as numbers. A pooler or attention that `order` does not list follows
    those it does, by name.
    """

    def place(label: str) -> tuple[Any, ...]:
        design = designs[label]
        cell = tuple(getattr(design, name) or design.factors.get(name, "") for name in ("pooler", "attn"))
        if not cell[0]:
            return (True,)
        names = zip(cell, (order.get("pooler", []), order.get("attn", [])), strict=True)
        ranks = [(known.index(name), "") if name in known else (len(known), name) for name, known in names]
        return (False, ranks, *map(_natural, design.factors.values()))

    return sorted(designs, key=place)


def _natural(value: str) -> tuple[float, str]:
    """Sort numbers by size, then texts by letter."""
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value
