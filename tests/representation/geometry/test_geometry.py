"""Geometry of real vectors, the scores beside them, and what is said of their relation."""

import json

import numpy as np
import pandas as pd
import pytest

from encoders.vector_geometry import alignment, anisotropy
from representation.geometry import geometry
from representation.geometry.geometry import own_vectors, scores_of, type_scores
from representation.geometry.relation import (
    MEASURES,
    geometry_drawings,
    relation,
    relation_grid,
    relation_notes,
    spearman,
)


@pytest.fixture(scope="module")
def answered(two_encoders, texts, settings):
    return geometry.answer(two_encoders, texts, settings)


def invented(cells, seeds=1, with_score=True, trained=True):
    rng = np.random.default_rng(0)
    rows = []
    for cell in range(cells):
        for seed in range(seeds):
            for kind in ("Retrieval", "STS"):
                measures = {name: rng.normal() for name in MEASURES}
                measures["anisotropy"] = cell + 0.1 * seed
                score = -cell / 10 if kind == "STS" else rng.normal()
                who = {"encoder": f"{cell} seed={seed}", "design": str(cell), "seed": seed, "trained": trained}
                rows.append(who | {"type": kind} | measures | {"score": score if with_score else np.nan})
    return pd.DataFrame(rows)


def test_vectors_are_those_that_are_scored(two_encoders, texts):
    studied = two_encoders[1]
    found, encoder = own_vectors(studied, texts), studied.encoder()
    for wanted in (*texts.of_type.values(), [document for _, document in texts.pairs]):
        own = np.stack([found[text] for text in wanted])
        np.testing.assert_allclose(own, encoder.encode([text.text for text in wanted]), atol=1e-5)


def test_each_number_is_of_its_own_encoder_and_type(answered, two_encoders, texts):
    table = answered.frames["geometry"].set_index(["encoder", "type"])
    assert len(table) == 2 * 3
    for studied in two_encoders:
        found = own_vectors(studied, texts)
        queries, documents = (np.stack([found[text] for text in side]) for side in zip(*texts.pairs, strict=True))
        for kind, sample in texts.of_type.items():
            own = np.stack([found[text] for text in sample])
            assert table.loc[(studied.label, kind), "anisotropy"] == pytest.approx(anisotropy(own))
            near = alignment(queries, documents)
            assert table.loc[(studied.label, kind), "alignment"] == pytest.approx(near)


def test_without_scores_there_is_no_relation_and_it_is_said(answered):
    assert "geometry_relation" not in answered.frames
    assert any("No tasks were found" in note for note in answered.notes)
    assert [grid.name for grid in answered.grids] == ["geometry-encoders", "geometry-types"]


def test_scores_are_those_of_these_weights(settings, two_encoders):
    """Evaluation writes them, they are found again, and those of another attention are not."""
    from evaluation.scoring import Options, score
    from evaluation.tasks.chosen import task_set

    studied = two_encoders[1]
    outcome = score(studied.candidate, task_set(settings).tasks[:2], Options())
    found = scores_of(studied)
    assert found == {task: (kind, pytest.approx(value)) for task, (kind, value) in outcome.scores.items()}
    path = next(outcome.folder.glob("Docs*.json"))
    held = json.loads(path.read_text())
    held["scores"]["test"][0]["main_score"] = 0.125
    path.write_text(json.dumps(held))
    assert scores_of(studied)[path.stem] == (outcome.scores[path.stem][0], 0.125)
    assert scores_of(two_encoders[0]) == {}


def test_means_are_over_the_tasks_that_all_have():
    first = {"A": ("STS", 0.2), "B": ("STS", 0.4), "C": ("Retrieval", 0.5), "D": ("Retrieval", 0.9)}
    second = {"A": ("STS", 0.6), "B": ("STS", 0.8), "C": ("Retrieval", 0.1)}
    means, tasks = type_scores({"one": first, "two": second, "none": {}})
    assert means["one"] == pytest.approx({"STS": 0.3, "Retrieval": 0.5})
    assert means["two"] == pytest.approx({"STS": 0.7, "Retrieval": 0.1})
    assert (set(means), tasks) == ({"one", "two"}, {"STS": 2, "Retrieval": 1})
    assert type_scores({"one": {"A": ("STS", 1.0)}, "two": {"B": ("STS", 1.0)}}) == ({}, {})


def test_relation_is_over_designs_with_seeds_averaged():
    table = invented(8, seeds=2)
    found = relation(table).set_index(["type", "measure"])
    assert set(found["n"]) == {8}
    assert found.loc[("STS", "anisotropy"), "rho"] == pytest.approx(-1)
    means = table[table["type"] == "Retrieval"].groupby("design", sort=False)[["uniformity", "score"]].mean()
    expected = spearman(means["uniformity"], means["score"])
    assert found.loc[("Retrieval", "uniformity"), ["rho", "low", "high"]].tolist() == pytest.approx(
        [expected.rho, expected.low, expected.high]
    )


def test_runs_and_starts_are_not_mixed():
    both = pd.concat([invented(6), invented(4, trained=False), invented(3, with_score=False)])
    found = relation(both)
    assert dict(zip(found["cells"], found["n"], strict=True)) == {"trained": 6, "untrained": 4}


def test_what_cannot_be_told_is_said():
    five = relation(invented(5))
    (note,) = relation_notes(five)
    assert "10 of 10 intervals hold 0: there the relation cannot be told from 5 cells" in note
    assert "even a perfect order holds 0" in note
    eight = relation(invented(8))
    (note,) = relation_notes(eight)
    told = int(eight["told"].sum())
    assert told >= 1  # the planted one
    assert f"{10 - told} of 10 intervals hold 0" in note
    assert "Anisotropy on STS (-1.00)" in note
    (note,) = relation_notes(relation(invented(3)))
    assert "with 3 cells there is no interval" in note


def test_grid_marks_what_is_told_and_figure_has_a_panel_each():
    table = invented(8)
    found = relation(table)
    grid = relation_grid(found, "some texts")
    marks = [[cell.mark for cell in row[2:]] for row in grid.rows]
    told = found.set_index(["type", "measure"])["told"].unstack("measure").loc[["Retrieval", "STS"], list(MEASURES)]
    assert marks == [["*" if cell else "" for cell in row] for row in told.to_numpy()]
    (drawing,) = geometry_drawings(table, found, "some texts")
    assert len(drawing.figure.axes) == len(MEASURES) * 2
    assert drawing.caption.endswith("Vectors: some texts.")
