"""Which subjects have a backbone of their own: the starts of runs that differ in their head alone share one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from records.fingerprint import of_value
from records.identity import MEANT, below, of_states

if TYPE_CHECKING:
    from representation.subject import Subject


def distinct_backbones(subjects: Sequence["Subject"], with_attention: bool) -> list["Subject"]:
    """Return the subjects whose states of tokens differ: every run, and of untrained starts the first of each backbone.

    A start is then called "untrained", or by its earlier stages, "mntp + simcse", since pooler, head and seed do not
    reach its backbone; another template than the usual one is named ("untrained, echo"). with_attention: whether causal
    and bi tell two starts apart ("untrained, bi").
    """
    found: dict[str, Subject] = {}
    for subject in subjects:
        key = subject.label if subject.trained else backbone_key(subject, with_attention)
        if key not in found:
            name = _name(subject, with_attention)
            found[key] = subject if subject.trained else replace(subject, label=name, design=name)
    return _told_apart(list(found.values()))


def by_design(subjects: Sequence["Subject"]) -> dict[str, list["Subject"]]:
    """Return design -> its subjects, one a seed, in the order of the first of each."""
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.design or subject.label, []).append(subject)
    return found


def over_seeds(subjects: Sequence["Subject"]) -> list[str]:
    """A note on designs of several seeds, none where there is none: what is shown of them is the mean."""
    several = {name: [s.seed for s in own] for name, own in by_design(subjects).items() if len(own) > 1}
    if not several:
        return []
    said = "; ".join(f"{name} {', '.join(map(str, seeds))}" for name, seeds in several.items())
    return [f"Tables and figures hold the mean over seeds ({said}), the csv files each seed."]


def start_of(run: "Subject", subjects: Sequence["Subject"], with_attention: bool) -> "Subject | None":
    """The untrained one of `subjects` whose backbone `run` began from, where it is among them."""
    key = backbone_key(run, with_attention)
    return next((s for s in subjects if not s.trained and backbone_key(s, with_attention) == key), None)


def stages_of(subject: "Subject") -> list[dict[str, Any]]:
    """Facts of the stages that the subject's backbone has behind it: run, objective, adapter_sha256."""
    facts: list[dict[str, Any]] = subject.candidate.manifest.get("lineage") or []
    return facts


def backbone_key(subject: "Subject", with_attention: bool = True) -> str:
    """Return a digest of all that the states of the subject's start depend on: two starts with one digest are one."""
    settings = of_states(subject.config)
    kept = {key: value for key, value in settings.items() if with_attention or not below(key, ("attn",))}
    return of_value([kept, [stage["adapter_sha256"] for stage in stages_of(subject)]])


def _name(subject: "Subject", with_attention: bool) -> str:
    name = " + ".join(stage["objective"] for stage in stages_of(subject)) or "untrained"
    template = of_states(subject.config)["template.name"]
    name += "" if template == MEANT["template.name"] else f", {template}"
    return f"{name}, {subject.config['attn']['name']}" if with_attention else name


def _told_apart(subjects: list["Subject"]) -> list["Subject"]:
    """Number starts that share name and seed, such as those after two kinds of mntp; seeds are one design's."""
    keys = [(subject.design, subject.seed) for subject in subjects]
    return [
        subject if subject.trained or keys.count(key) == 1 else replace(subject, label=name, design=name)
        for i, (subject, key) in enumerate(zip(subjects, keys, strict=True))
        for name in [f"{subject.design} ({keys[: i + 1].count(key)})"]
    ]
