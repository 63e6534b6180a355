"""Warnings of the calibration, where they apply to the data at hand: intervals, skewness, related tasks."""

import numpy as np

from analysis.intraclass import intraclass
from analysis.power import Shifted
from analysis.section import Material, Section
from analysis.validity import coverage_note, related_note, skew_note


def validity_section(material: Material) -> Section | None:
    """Return the warnings for the last block, all tasks together, or None where there is nothing to warn of."""
    tasks = list(material.blocks.values())[-1]
    pairs = material.pairs[material.pairs["type"] == list(material.blocks)[-1]]
    values = material.matrix.loc[tasks]
    differences = values[pairs["second"]].to_numpy(dtype=float).T - values[pairs["first"]].to_numpy(dtype=float).T
    skewness = np.array([Shifted(row).skewness for row in differences])
    groups = [[tasks.index(task) for task in own] for own in material.types.values()]
    notes = skew_note(skewness, len(tasks)) + related_note(intraclass(differences, groups), len(tasks))
    if "boot_low" in pairs:  # the interval that analysis.pairs prints
        notes += coverage_note("bootstrap-t", len(tasks))
    return Section("validity", notes=notes) if notes else None
