"""`data=mix`: examples of several sources, each with its share of a run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cli.errors import UserError, nearest
from corpora.triples import Triple, fingerprint, function_of

Config = dict[str, Any]


def triples(data: Config, cache_dir: str) -> list[Triple]:
    """Return the examples of all sources, those of share 0 too: runs that differ in shares have the same data.
    The source of an example is that of the mix and its own: "pairs/torch"; it brings the instruction of its source."""
    check_mix(data)
    mixed = []
    for name, source in sources(data).items():
        for t in function_of(source["reader"])(source, cache_dir):
            labels = tuple(tuple(f"{name}/{label}" for label in of_text) for of_text in t.labels)
            instruction = t.instruction or source["instruction"]
            mixed.append(replace(t, source=f"{name}/{t.source}", instruction=instruction, labels=labels))
    return mixed


def sources(data: Config) -> dict[str, Config]:
    """Return name -> configuration of each source that is given, by name."""
    return {name: source for name, source in sorted(data["sources"].items()) if source}


def by_source(examples: Iterable[Triple]) -> dict[str, list[int]]:
    """Return source of the mix -> the numbers of its examples."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, example in enumerate(examples):
        numbers[example.origin].append(number)
    return dict(numbers)


def shares(data: Config) -> dict[str, float]:
    """Return source -> its share of the examples of a run, by name; a share of null is what the others leave."""
    given: Mapping[str, float | None] = dict(sorted(data["mix"].items()))
    rest = 1 - sum(share or 0 for share in given.values())
    return {name: max(0.0, rest) if share is None else float(share) for name, share in given.items()}


def check_mix(data: Config) -> None:
    """Refuse shares that are no shares, or of no source, and sources that hold raw text. Raises `UserError`."""
    given, known = data["mix"], sources(data)
    for name, share in given.items():
        if share is not None and not (type(share) in (int, float) and 0 <= share <= 1):
            raise UserError(f"data.mix.{name}={share} must be a number from 0 to 1; null: what the others leave.")
        if name not in known and share != 0:
            mend = f"Give data@data.sources.{name}=<option of data=>, or data.mix.{name}=0. {nearest(name, known)}"
            raise UserError(f"data.mix.{name} is the share of a source that is not given. {mend}")
    open_ends = list(given.values()).count(None)
    rest = 1 - sum(share or 0 for share in given.values())
    if open_ends > 1 or rest < -1e-9 or (rest > 1e-9 and not open_ends):
        raise UserError(f"data.mix={given} must sum to 1; one share may be null, which is what the others leave.")
    for name, source in known.items():
        if name not in given or "reader" not in source:
            fault = "has no share in data.mix" if name not in given else f"is data={source['name']}, raw text"
            raise UserError(f"data.sources.{name} {fault}. Give it a share, pairs, classes or graded pairs.")
        if source["one_source"] and not data["one_source"]:
            raise UserError(f"data.sources.{name}.one_source=true needs batches of one source: data.one_source=true.")
    if not any(source["validation"] for source in known.values()):
        raise UserError("No source of data=mix keeps examples for validation. Give data.sources.<name>.validation=128.")


def facts(data: Config, examples: list[Triple], trained_on: list[Triple]) -> Config:
    """Return source -> what the manifest says of it: share, kind, sha256, how many examples, and of how many labels."""
    part, trained, share = by_source(examples), by_source(trained_on), shares(data)
    of_source = {name: [examples[i] for i in numbers] for name, numbers in part.items()}
    return {
        name: {
            "share": share[name],
            "kind": some[0].kind,
            "sha256": fingerprint(some),
            "examples": len(some),
            "trained_on": len(trained.get(name, ())),
            "labels": len({t.labels[0][0] for t in some if t.labels}),
        }
        for name, some in of_source.items()
    }
