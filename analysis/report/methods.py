"""The methods paragraph: the tests that were really used, with the settings of this run."""

from collections.abc import Iterator

from analysis.analyse import Result
from analysis.names import listed
from analysis.questions.pair_texts import seed_notes
from analysis.questions.question import Material
from analysis.result_json import versions
from analysis.scores.task_types import known_types


def methods(result: Result) -> list[str]:
    """Return the sentences, citations as [@key]."""
    return [
        *_compared(result.material),
        *_control(result.material),
        *(sentence for answer in result.answers for sentence in answer.methods),
        _software(result),
    ]


def _compared(material: Material) -> Iterator[str]:
    tasks, kinds = len(material.matrix), {kind: len(own) for kind, own in material.types.items()}
    types = (
        f" of {len(kinds)} types ({', '.join(f'{kind}: {n}' for kind, n in kinds.items())})" if len(kinds) > 1 else ""
    )
    kind = f" of the type {next(iter(kinds))}" if len(kinds) == 1 else ""
    yield f"We compared {len(material.designs)} designs on {tasks} tasks{types}{kind}{_benchmark(material)}."
    if any(design.pooler for design in material.designs.values()):
        yield "The designs are cells of the grid pooling x attention [@tang2024]."
    yield from seed_notes(material.frame, list(material.designs))


def _benchmark(material: Material) -> str:
    """mteb's own tasks, or others that its program scored."""
    if all(task in known_types() for task in material.matrix.index):
        return " of MTEB [@muennighoff2023]"
    folders = all(path.is_dir() for path in material.settings.scores)
    return ", scored with the program of MTEB [@muennighoff2023]" if folders else ""


def _control(material: Material) -> Iterator[str]:
    """Where manifests prove it; foreign scores prove nothing and nothing is claimed."""
    if not any(design.runs for design in material.designs.values()):
        return
    factors = listed(material.settings.factors)
    but = listed([key for note in material.footnotes for key in note.keys])
    allowed = f", except in {but}, which we let through" if but else ""
    agree = f"agree in everything but the factors ({factors}) and what follows from them"
    yield f"The manifests of all runs {agree}{allowed}."


def _software(result: Result) -> str:
    """Name what ran, no package that is merely installed."""
    found = versions(result.material.settings.figures)
    used = ", ".join(f"{name} {number}" for name, number in found.items() if name != "python")
    return f"Computed with Python {found['python']} ({used})."
