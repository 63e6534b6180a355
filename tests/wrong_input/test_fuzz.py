"""Any bytes, and any change of good ones, in each reader: an answer of one line, or good input still.

FUZZ_SECONDS=60 pytest tests/wrong_input/test_fuzz.py: as long in each reader, in place of a few examples.
"""

import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.claims import read_claims
from analysis.manifests.read_manifest import read_manifest
from analysis.scores.csv_table import read_csv
from analysis.scores.mteb_task import read_task
from analysis.scores.task_types import clusters_of, read_types
from tests.wrong_input.damages import answer
from tests.wrong_input.test_damaged_data import READERS as OF_DATA
from tests.wrong_input.test_damaged_scores import READERS as OF_SCORES

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
FEW = 12
HEALTH = list(HealthCheck)
PATHS: dict[str, Callable] = {  # the readers themselves, where the command reads a whole study beside
    "score": partial(read_task, model="m", seed="0"),
    "manifest": read_manifest,
    "tasks.json": read_types,
    "scores.csv": partial(read_csv, own_types={}),
    "scores.csv.gz": partial(read_csv, own_types={}),
    "claims": read_claims,
    "cluster": lambda path: clusters_of(str(path), ["one", "two"]),
}
READERS = {**OF_DATA, **{name: OF_SCORES[name] for name in PATHS}}
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=9)
VALUES = st.recursive(LEAVES, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3))


def changed(draw: Callable, good: bytes) -> bytes:
    """Bytes of any kind, good ones with some in their midst, or records with a value of another kind."""
    kind = draw(st.sampled_from(("any", "midst", "value", "value")))
    lines = good.split(b"\n")
    if kind == "any":
        return draw(st.binary(max_size=99))
    place = draw(st.integers(0, len(lines) - 1))
    try:
        record = json.loads(lines[place] if len(lines) > 1 else good)
        key = draw(st.sampled_from(sorted(record)))
    except (ValueError, TypeError, IndexError):
        kind = "midst"
    if kind == "midst":
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(good))] * 2)))
        return good[:start] + draw(st.binary(max_size=9)) + good[end:]
    record[key] = draw(VALUES)
    lines[place] = json.dumps(record).encode()
    return b"\n".join(lines)


@pytest.mark.parametrize("name", READERS)
def test_any_input_is_answered(tmp_path, name):
    path, call = READERS[name](tmp_path)
    call = partial(PATHS[name], path) if name in PATHS else call
    good, tried = path.read_bytes(), 0

    @settings(max_examples=200 if SECONDS else FEW, deadline=None, database=None, suppress_health_check=HEALTH)
    @given(st.data())
    def one(data: Any) -> None:
        nonlocal tried
        tried += 1
        path.write_bytes(changed(data.draw, good))
        assert answer(call, tmp_path) in ("", "passes")

    end = time.monotonic() + SECONDS
    one()
    while time.monotonic() < end:
        one()
    if SECONDS:
        print(f"{name}: {tried} inputs")
