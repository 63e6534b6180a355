"""The command: which encoders, which texts, which files; errors are one line."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import representation
from analysis.drawings.drawing import Drawing
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from cli.errors import UserError
from representation.__main__ import main
from representation.encoders_studied import read_encoders
from representation.question import questions
from representation.write import markdown, write_answer


def toy(name="toy"):
    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1], [0, 1])
    grid = Grid(f"{name}-grid", "What it is.", ["Encoder", "Value"], [[Cell("a|b"), Cell("1")]], title="A table")
    drawing = Drawing(f"{name}_line", "A line", "One line, over nothing.", "A line rises.", figure)
    return Answer(name, "A toy", [grid], lambda: [drawing], {f"{name}_values": pd.DataFrame({"x": [0.1]})}, ["A note."])


def test_labels_tell_encoders_apart(two_encoders):
    assert [s.label for s in two_encoders] == ["multilayer-causal untrained", "multilayer-bi untrained"]
    assert not any(s.trained for s in two_encoders)


def test_labels_have_seed_study_or_place_where_they_are_needed(two_encoders, monkeypatch):
    causal, bi = (studied.candidate for studied in two_encoders)
    other_seed = replace(bi, manifest={**bi.manifest, "seed": 1})
    other_study = replace(bi, manifest={**bi.manifest, "study": "embedded+lora.r-8"})
    other_place = replace(bi, results=bi.results / "copy" / "scores")

    def labels(*found):
        monkeypatch.setattr("representation.encoders_studied.candidates", lambda cfg: found)
        return [(studied.label, studied.design) for studied in read_encoders({})]

    start = "multilayer-bi untrained"
    assert labels(bi, other_seed) == [(f"{start} seed=0", start), (f"{start} seed=1", start)]
    assert [label for label, _ in labels(bi, other_study)] == [f"embedded/{start}", f"embedded+lora.r-8/{start}"]
    assert [label for label, _ in labels(causal, other_study)] == ["multilayer-causal untrained", start]
    (_, one), (_, other) = labels(bi, other_place)
    assert one != other
    assert str(bi.results.parent) in one
    assert len(labels(bi, bi)) == 1


def test_sample_is_fixed_and_of_each_type(texts, settings):
    from representation.texts import read_texts

    assert {kind: len(sample) for kind, sample in texts.of_type.items()} == dict.fromkeys(
        ("Retrieval", "Classification", "PairClassification"), 12
    )
    for kind, sample in texts.of_type.items():
        assert {t.type for t in sample} == {kind}
        assert len({t.text for t in sample}) == 12
    assert read_texts(settings).of_type == texts.of_type
    assert read_texts({**settings, "texts_seed": 1}).of_type != texts.of_type
    assert len(texts.pairs) == 12
    assert all(query.side == "query" and document.side == "document" for query, document in texts.pairs)


def test_passes_reach_every_text_once_as_encoding_alone_does(texts, two_encoders):
    studied, wanted = two_encoders[1], texts.every
    encoder = studied.encoder()
    found = np.full((len(wanted), encoder.embedding_dim), np.nan)
    for places, part in texts.passes(studied, wanted, lambda batch: encoder.encoder(batch).numpy()):
        assert np.isnan(found[places]).all()
        found[places] = part
    np.testing.assert_allclose(found, encoder.encode([t.text for t in wanted]), atol=1e-5)


def test_one_encoder_is_held_at_a_time(two_encoders):
    first = two_encoders[0].encoder()
    assert two_encoders[0].encoder() is first
    two_encoders[1].encoder()
    assert two_encoders[0].encoder() is not first


def test_files_and_json_of_an_answer_and_others_stay(tmp_path):
    write_answer(toy("one"), tmp_path, "two encoders")
    write_answer(toy("two"), tmp_path, "two encoders")
    write_answer(toy("one"), tmp_path, "three encoders")
    held = json.loads((tmp_path / "answers.json").read_text())["answers"]
    assert [(a["name"], a["over"]) for a in held] == [("two", "two encoders"), ("one", "three encoders")]
    assert held[0]["grids"][0]["rows"][0][0]["text"] == "a|b"
    assert (held[0]["figures"][0]["width"], held[0]["figures"][0]["height"]) == (192, 96)
    assert (tmp_path / "one_values.csv").read_text() == "x\n0.1\n"
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {
        *("one_line.pdf", "one_line.png"),
        *("two_line.pdf", "two_line.png"),
    }


def test_markdown_has_captions_and_notes():
    text = markdown(toy())
    assert "One line, over nothing." in text
    assert r"a\|b" in text
    assert "- A note." in text


def test_questions_are_found_by_their_files():
    """Every module below representation/ that answers has a place of its own and keys of its name alone."""
    known, folder = questions(), Path(representation.__file__).parent
    files = {path.stem for path in folder.rglob("*.py") if re.search("^def answer", path.read_text(), re.MULTILINE)}
    assert set(known) == files
    assert len({question.PLACE for question in known.values()}) == len(known)
    assert list(known)[:3] == ["layers", "geometry", "read_ahead"]
    for name, question in known.items():
        assert all(key.startswith(f"{name}.") for key in getattr(question, "LIMITS", {}))


def test_command_asks_a_question_and_prints(monkeypatch, capsys, representation_words, tmp_path):
    seen = []

    def answer(encoders, texts, settings):
        seen.extend(s.label for s in encoders)
        return toy()

    monkeypatch.setattr("representation.command.questions", lambda: {"toy": SimpleNamespace(answer=answer)})
    main([*representation_words, "questions=[toy]", f"out={tmp_path}/a=b"])
    said = capsys.readouterr()
    assert seen == ["multilayer-bi untrained"]
    assert "# A toy" in said.out
    assert "12 texts of each of 3 task types of benchmark docs_smoke (networkx)" in said.err
    assert (tmp_path / "a=b" / "answers.json").is_file()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["run=nowhere"], "No run folder matches nowhere"),
        (["text=3"], "There is no key 'text'"),
        (["texts=3"], "texts=3 must be a whole number, at least 8"),
        (["questions=[layerz]"], "There is no question 'layerz'"),
        (["benchmark=SciFact"], "There is no benchmark 'SciFact'"),
        (["tasks=[SciFact]"], "Texts are read from"),
        (["words"], "is no key=value"),
    ],
)
def test_errors_are_one_line(words, part, representation_words):
    with pytest.raises(UserError, match=part) as caught:
        main([*(() if words[0].startswith(("run", "tasks")) else representation_words), *words])
    assert "\n" not in str(caught.value)
