"""Which subjects have a backbone of their own: the starts of runs that differ in their head alone share one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from records.fingerprint import of_value

if TYPE_CHECKING:
    from representation.subject import Subject

OF_BACKBONE = ("model", "max_length", "precision", "evaluation")


def distinct_backbones(subjects: Sequence["Subject"], with_attention: bool) -> list["Subject"]:
    """Return the subjects whose states of tokens differ: every run, and of untrained starts the first of each backbone.

    A start is then called "untrained", or by its earlier stages, "mntp + simcse", since pooler, head and seed do not
    reach its backbone. with_attention: whether causal and bi tell two starts apart ("untrained, bi").
    """
    found: dict[str, Subject] = {}
    for subject in subjects:
        key = subject.label if subject.trained else of_value(_own(subject, with_attention))
        if key not in found:
            found[key] = subject if subject.trained else replace(subject, label=_name(subject, with_attention))
    return _told_apart(list(found.values()))


def stages_of(subject: "Subject") -> list[dict[str, Any]]:
    """Facts of the stages that the subject's backbone has behind it: run, objective, adapter_sha256."""
    facts: list[dict[str, Any]] = subject.candidate.manifest.get("lineage") or []
    return facts


def _own(subject: "Subject", with_attention: bool) -> list[Any]:
    config = subject.config
    settings = [config.get(key) for key in OF_BACKBONE]
    return [*settings, config["attn"] if with_attention else None, [s["adapter_sha256"] for s in stages_of(subject)]]


def _name(subject: "Subject", with_attention: bool) -> str:
    name = " + ".join(stage["objective"] for stage in stages_of(subject)) or "untrained"
    return f"{name}, {subject.config['attn']['name']}" if with_attention else name


def _told_apart(subjects: list["Subject"]) -> list["Subject"]:
    """Number those that share a name, such as starts after two seeds of a stage."""
    names = [subject.label for subject in subjects]
    return [
        replace(subject, label=f"{name} ({names[: i + 1].count(name)})") if names.count(name) > 1 else subject
        for i, (subject, name) in enumerate(zip(subjects, names, strict=True))
    ]
