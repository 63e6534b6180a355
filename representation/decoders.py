"""Which encoders are the same decoder: heads do not reach into layers, so starts that differ in the head are one."""

from collections.abc import Sequence
from dataclasses import dataclass

from representation.backbones import backbone_key
from representation.subject import Subject


@dataclass(frozen=True)
class Decoder:
    """`label`: `multilayer-bi` for the runs of a design, `untrained, bi` for a start. `seeds`: one a seed.

    `start`: label of the untrained decoder that a run began from, where it is among those that are looked at.
    """

    label: str
    seeds: tuple[Subject, ...]
    start: str = ""

    @property
    def trained(self) -> bool:
        """Whether these are runs."""
        return self.seeds[0].trained


def decoders(subjects: Sequence[Subject]) -> list[Decoder]:
    """Return the different decoders: each start, then the runs that began from it."""
    starts: dict[str, Subject] = {}
    for subject in subjects:
        if not subject.trained:
            starts.setdefault(backbone_key(subject), subject)
    called = [f"untrained, {subject.config['attn']['name']}" for subject in starts.values()]
    unlike = len(set(called)) == len(called)
    found: list[Decoder] = []
    runs = [subject for subject in subjects if subject.trained]
    for (key, subject), name in zip(starts.items(), called, strict=True):
        label = name if unlike else subject.label
        found += [Decoder(label, (subject,)), *_designs([run for run in runs if backbone_key(run) == key], label)]
    return found + _designs([run for run in runs if backbone_key(run) not in starts], "")


def _designs(runs: list[Subject], start: str) -> list[Decoder]:
    by_design: dict[str, list[Subject]] = {}
    for run in runs:
        by_design.setdefault(run.design, []).append(run)
    return [Decoder(design, tuple(seeds), start) for design, seeds in by_design.items()]
