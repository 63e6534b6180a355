"""A table of two designs whose differences have a given mean and spread."""

import json

import numpy as np

from tests.analysis.three_seeds import write_long


def write_pairs(path, n, shift, sd=0.02, seeds=0):
    """Write n tasks of designs a and b to `path`, mean difference exactly `shift`, and their types beside it.

    seeds: without any the table is wide and of one run each; with them long, and the means are those of the wide one.
    """
    rng = np.random.default_rng(n)
    noise = rng.normal(0, sd, n)
    noise -= noise.mean()
    first = rng.uniform(0.3, 0.7, n)
    tasks = ",".join(f"t{k}" for k in range(n))
    kinds = {f"t{k}": {"type": "STS"} for k in range(n)}
    path.with_name("tasks.json").write_text(json.dumps(kinds))
    if seeds:
        return write_long(path, [first, first + noise + shift], "ab", dict.fromkeys(kinds, "STS"), seeds)
    rows = [",".join(f"{value:.9f}" for value in row) for row in (first, first + noise + shift)]
    path.write_text(f"model,{tasks}\na,{rows[0]}\nb,{rows[1]}\n")
    return path
