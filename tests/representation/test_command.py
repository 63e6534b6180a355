"""The command: which encoders, which of them are one decoder, which texts, which files; errors are one line."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.render import Section, Table
from cli.compose import composed, plain
from cli.errors import UserError
from representation.__main__ import main
from representation.encoders_studied import Studied, after_their_starts, by_design, distinct_backbones
from representation.texts import read_texts
from representation.write import write_section


def toy(name="toy"):
    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1], [0, 1])
    table = Table(f"{name}-table", "A table", "What it is.", pd.DataFrame({"Encoder": ["a|b"], "Value": [1]}))
    drawing = Drawing(f"{name}_line", "A line", "One line, over nothing.", figure)
    return Section(
        name, "A toy", [table], lambda: [drawing], {f"{name}_values": pd.DataFrame({"x": [0.1]})}, ["A note."]
    )


def test_labels_tell_encoders_apart(two_encoders):
    assert [s.label for s in two_encoders] == ["multilayer-causal untrained", "multilayer-bi untrained"]
    assert not any(s.trained for s in two_encoders)


def test_sample_is_fixed_and_of_each_type(texts, settings):
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


def test_files_of_a_section_and_others_stay(tmp_path):
    write_section(toy("one"), tmp_path, "two encoders")
    write_section(toy("two"), tmp_path, "two encoders")
    write_section(toy("one"), tmp_path, "three encoders")
    held = json.loads((tmp_path / "sections.json").read_text())["sections"]
    assert [(a["name"], a["over"]) for a in held] == [("two", "two encoders"), ("one", "three encoders")]
    assert held[0]["tables"][0]["data"] == [["a|b", "1"]]
    assert (tmp_path / "one_values.csv").read_text() == "x\n0.1\n"
    assert {p.suffix for p in (tmp_path / "figures").iterdir()} == {".pdf", ".png"}


def test_command_prints_a_section(monkeypatch, capsys, representation_words, tmp_path):
    seen = []

    def section(encoders, texts, settings):
        seen.extend(s.label for s in encoders)
        return toy()

    monkeypatch.setattr("representation.command.sections", lambda: {"toy": SimpleNamespace(section=section)})
    main([*representation_words, "tables=[toy]", f"out={tmp_path}/a=b"])
    said = capsys.readouterr()
    assert seen == ["multilayer-bi untrained"]
    assert "# A toy" in said.out
    assert "12 texts of each of 3 task types of benchmark docstrings_smoke (networkx)" in said.err
    assert (tmp_path / "a=b" / "sections.json").is_file()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["run=nowhere"], "No run folder matches nowhere"),
        (["texts=3"], "texts=3 must be a whole number, at least 8"),
        (["tasks=[SciFact]"], "Texts are read from"),
    ],
)
def test_errors_are_one_line(words, part, representation_words):
    with pytest.raises(UserError, match=part) as caught:
        main([*(() if words[0].startswith(("run", "tasks")) else representation_words), *words])
    assert "\n" not in str(caught.value)


USUAL = {"model": {"path": "tiny"}, "max_length": 64, "template": {"name": "instruct"}}


def made(design, attn="bi", trained=False, seed=0, stages=(), **further):
    manifest = {
        "seed": seed,
        "config": {**USUAL, "attn": {"name": attn}, **further},
        "merged": [
            {"objective": objective, "adapter_sha256": f"{objective}{seed}{kind}"} for objective, kind in stages
        ],
    }
    return Studied(SimpleNamespace(manifest=manifest, trained=trained), f"{design} seed={seed}", design)


RUNS = [made("mean-bi", trained=True, seed=0), made("mean-bi", trained=True, seed=1)]


def labels(encoders, with_attention):
    return [s.label for s in distinct_backbones(encoders, with_attention)]


def test_starts_that_differ_in_head_and_seed_are_one():
    starts = [made("eos-bi untrained"), made("mean-bi untrained", seed=1), made("eos-causal untrained", "causal")]
    assert labels([*starts, *RUNS], True) == ["untrained, bi", "untrained, causal", "mean-bi seed=0", "mean-bi seed=1"]
    assert labels([*starts, *RUNS], False) == ["untrained", "mean-bi seed=0", "mean-bi seed=1"]


def test_starts_after_stages_are_called_by_them_and_are_a_design_over_seeds():
    starts = [made("x untrained", seed=seed, stages=[("mntp", ""), ("simcse", "")]) for seed in (0, 1)]
    own = distinct_backbones([made("x untrained"), *starts, *RUNS], True)
    assert list(by_design(own)) == ["untrained, bi", "mntp + simcse, bi", "mean-bi"]
    assert [len(seeds) for seeds in by_design(own).values()] == [1, 2, 2]


def test_starts_of_two_templates_are_two_and_runs_find_their_own():
    """A template writes the text's tokens out, so its states are others: two rows, never one."""
    usual, echo = (plain(composed("train", [f"template={name}"]))["template"] for name in ("instruct", "echo"))
    run = made("mean-bi", trained=True, template=echo)
    encoders = [made("a", template=usual), made("b", template=echo), run]
    assert labels(encoders, False) == ["untrained", "untrained, echo", "mean-bi seed=0"]
    pairs = after_their_starts(distinct_backbones([*encoders, made("sgpt", "causal", trained=True, template=usual)]))
    assert [(s.label, start) for s, start in pairs] == [
        ("untrained, bi", ""),
        ("untrained, echo, bi", ""),
        ("mean-bi seed=0", "untrained, echo, bi"),
        ("sgpt seed=0", ""),
    ]
