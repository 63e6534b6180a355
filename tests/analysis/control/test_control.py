"""The control rule on scores: each planted difference is refused and named, or becomes a footnote."""

import json
import re

import pytest

from analysis.control.rule import NotControlledError, _concerns
from analysis.render import markdown
from analysis.write import document, write_files
from cli.errors import UserError

DESIGNS = ("eos-causal", "lastlayer-bi", "multilayer-causal")  # as `planted` writes them
PLANTED = [  # (what, the change of one run, the keys that must be named); test_every_manifest_key.py has all keys
    ("data", {"_data__sha256": "d" * 64}, ["data.sha256"]),
    ("length", {"max_length": 32, "_evaluation__max_length": 32}, ["max_length", "evaluation.max_length"]),
    ("code", {"_code__sha256": "c" * 64}, ["code.sha256"]),
    ("instruction sets", {"_machine__instruction_sets": {"torch": "AVX2"}}, ["machine.instruction_sets.torch"]),
    ("texts", {"_evaluation__inputs__STS1 test default": "0" * 64}, ["evaluation.inputs.STS1 test default"]),
    ("a key that one lacks", {"lora__dropout": None}, ["lora.dropout"]),
    ("a fact of scoring that one lacks", {"_evaluation__seed": None}, ["evaluation.seed"]),
]


@pytest.mark.parametrize(("what", "changes", "keys"), PLANTED, ids=[what for what, _, _ in PLANTED])
def test_a_planted_difference_is_refused_and_named(planted, read_words, what, changes, keys):
    root = planted(**changes).root
    with pytest.raises(NotControlledError) as error:
        read_words(f"scores={root}")
    rows = error.value.table.frame
    assert sorted({key.partition(" (seed")[0] for key in rows["Key"]}) == sorted(keys)
    assert all(key in str(error.value) for key in keys)
    assert rows.set_index("Designs").loc[["lastlayer-bi"], "Value"].iloc[0]
    allowed = re.search(r"allow=\[(.*?)\]", str(error.value))[0]
    notes = read_words(f"scores={root}", allowed).compared.footnotes  # the mend that the error names does mend it
    assert sorted(key for note in notes for key in note.keys) == sorted(keys)


def test_a_poolers_own_file_and_head_sizes_that_it_does_not_take_over_are_compared(study, read_words, spread_scores):
    study.run("eos-causal", spread_scores(0.3), head__num_queries=1)
    study.run("eos-bi", spread_scores(0.4), _code__pooler="e" * 64)
    with pytest.raises(UserError, match=r"also in code\.pooler, head\.num_queries"):
        read_words(f"scores={study.root}")


def test_inputs_of_tasks_that_are_left_out_do_not_count(planted, read_words):
    root = planted(**{"_evaluation__inputs__STS1 test default": "0" * 64}).root
    assert read_words(f"scores={root}", "types=[Retrieval]").compared.footnotes == []


@pytest.mark.parametrize("key", ["inputs.My Task test default", "tasks.My Task", "seed"])
def test_a_task_may_have_a_space_in_its_name(key):
    assert _concerns(f"evaluation.{key}", {"My Task"})
    assert _concerns(f"evaluation.{key}", {"Other"}) == (key == "seed")


def test_footnotes_stand_in_the_tables(planted, analyse_words, tmp_path):
    root = planted(_threads=2, _versions__torch="2.8.0").root
    result = analyse_words(f"scores={root}", "allow=[threads,versions,kernel]")
    assert "allow=[kernel] let nothing through: no design differs there." in result.notes
    (note,) = result.compared.footnotes
    line = "threads: 2 in lastlayer-bi, 4 in the others; versions.torch: 2.8.0 in lastlayer-bi, 2.9.0 in the others"
    assert note.text == f"{line} (allowed)"
    text = document(result)
    assert text.count(f"a: {note.text}") == sum(len(table.footnotes) for table in result.tables)
    assert not re.search(r"^\| \**lastlayer-bi\** +\|", text, re.MULTILINE)
    assert len(re.findall(r"^\| lastlayer-bi \[a\] +\|", text, re.M)) >= 2  # means, costs
    assert "| lastlayer-bi - eos-causal [a]" in text
    assert "| multilayer-causal - eos-causal  " in text
    write_files(result, tmp_path / "out")
    rows = (tmp_path / "out" / "pairs.csv").read_text().splitlines()
    assert rows[0].endswith(",differs_in")
    assert rows[1].endswith(",threads;versions.torch")
    assert rows[2].endswith(",")  # eos-causal and multilayer-causal agree


def test_keys_that_no_run_has_are_refused_with_their_neighbours(planted, read_words):
    scores = f"scores={planted(_threads=2).root}"
    for word in ("allow=[threads,objective.temprature]", "factors=[pooler,attn,objective.temprature]"):
        with pytest.raises(UserError, match=r"'objective.temprature', a key that no run has. Nearest: objective.temp"):
            read_words(scores, word)
    with pytest.raises(UserError, match="seed cannot be a factor"):
        read_words(scores, "factors=[seed]")


def test_a_further_factor_makes_designs(study, read_words, spread_scores):
    study.run("lastlayer-bi", spread_scores(0.3))
    study.run("lastlayer-bi", spread_scores(0.4), study="s+pooler.tokens-mean", pooler__tokens="mean")
    with pytest.raises(UserError, match=r"also in pooler.tokens.*factors=\[pooler,attn,pooler.tokens\]"):
        read_words(f"scores={study.root}")
    result = read_words(f"scores={study.root}", "factors=[pooler,attn,pooler.tokens]")
    assert list(result.compared.designs) == ["lastlayer-bi tokens=all", "lastlayer-bi tokens=mean"]
    assert result.compared.designs["lastlayer-bi tokens=mean"].factors["pooler.tokens"] == "mean"


def test_a_factor_covers_the_facts_that_it_moves(study, read_words, spread_scores):
    study.run("eos-bi", spread_scores(0.3))
    study.run("eos-bi", spread_scores(0.4), study="t", model__name="big", _base_weights_sha256="1" * 64)
    words = [f"scores={study.root}", "factors=[model]"]
    assert list(read_words(*words).compared.designs) == ["eos-bi model=big", "eos-bi model=tiny"]
    study.run("eos-bi", spread_scores(0.4), study="u", model__name="small", _data__sha256="1" * 64)
    with pytest.raises(UserError, match=r"also in data\.sha256"):
        read_words(*words)


def test_seeds_within_a_design_agree_in_all_but_the_seed(planted, study, read_words, spread_scores):
    planted(seeds=(0, 1))
    assert read_words(f"scores={study.root}").compared.footnotes == []
    study.run("eos-causal", spread_scores(0.3), seed=1, lora__r=8)
    with pytest.raises(NotControlledError, match=r"also in lora\.r") as error:
        read_words(f"scores={study.root}")
    assert "eos-causal (seed 1)" in markdown(error.value.table)


def test_untrained_references_are_held_to_what_both_state(planted, study, read_words, spread_scores):
    planted()
    words = (f"scores={study.root}", "models=[eos-*,eos-causal-untrained]")
    study.run("eos-causal", spread_scores(0.1), trained=False)
    assert len(read_words(*words).compared.designs) == 2
    study.run("eos-causal", spread_scores(0.1), trained=False, _base_weights_sha256="1" * 64)
    with pytest.raises(NotControlledError, match="base_weights_sha256") as error:
        read_words(*words)
    assert "eos-causal (untrained)" in markdown(error.value.table)


def test_a_mix_is_a_factor_by_its_shares_and_its_sources_must_agree(study, read_words, spread_scores):
    def mix(classes, sha="1" * 64):
        of_source = {"pairs": {"sha256": sha, "share": 1 - classes}, "classes": {"sha256": "3" * 64, "share": classes}}
        return {"data__mix": {"pairs": None, "classes": classes}, "_data__of_source": of_source}

    study.run("eos-causal", spread_scores(0.4), study="s", **mix(0))
    study.run("eos-causal", spread_scores(0.4), study="t", **mix(0.3), _batch_order_sha256="e" * 64)
    with pytest.raises(UserError, match=r"also in batch_order_sha256, data\.mix\.classes"):
        read_words(f"scores={study.root}")
    shares = ("data.mix", ["mix=pairs:0.7+classes:0.3", "mix=pairs:1"])
    for factor, names in (shares, ("data.mix.classes", ["classes=0", "classes=0.3"])):
        found = read_words(f"scores={study.root}", f"factors=[pooler,attn,{factor}]")
        assert list(found.compared.designs) == [f"eos-causal {name}" for name in names]
    study.run("eos-bi", spread_scores(0.4), study="t", **mix(0.3, sha="2" * 64))
    with pytest.raises(UserError, match=r"also in .*data\.of_source\.pairs\.sha256"):
        read_words(f"scores={study.root}", "factors=[pooler,attn,data.mix]")


def test_foreign_scores_prove_nothing_and_need_a_word_beside_ours(planted, tmp_path, read_words, task_writer):
    for model in ("one", "two"):
        for k in range(3):
            task_writer(tmp_path / "foreign" / model / "r", f"STS1{k + 2}", 0.1 * k + 0.1)
    notes = read_words(f"scores={tmp_path / 'foreign'}", "allow=[foo]").notes
    assert any("No manifest stands beside these scores" in note for note in notes)
    assert "allow=[foo] let nothing through: there are no manifests." in notes
    study = planted()
    rows = tmp_path / "more.csv"
    rows.write_text("model,seed,task,type,score\ns__eos-causal,7,STS12,STS,0.5\n")
    with pytest.raises(UserError, match="s__eos-causal has scores with manifests and others without"):
        read_words(f"scores=[{study.root},{rows}]")
    for task in {path.stem for path in study.root.rglob("*[0-9].json")}:
        task_writer(study.root / "results" / "org__theirs" / "r1", task, 0.5)
    with pytest.raises(UserError, match=r"also in manifest\. .*allow=\[manifest\]"):
        read_words(f"scores={study.root}")
    (note,) = read_words(f"scores={study.root}", "allow=manifest").compared.footnotes
    assert note.text == "uncontrolled, since no manifest shows how it was made: org__theirs (allowed)"
    assert note.marked == {"org__theirs"}


def test_what_a_run_may_have_is_no_unknown_key(planted, read_words):
    """Groups of keys, keys that only some runs or none of these have, and what the rule itself names."""
    keys = ["threads", "machine", "machine.instruction_sets", "manifest", "seed", "code.sha256", "code", "versions"]
    keys += ["evaluation.inputs", "evaluation", "data", "data.sha256", "lora", "base_config_sha256"]
    keys += ["batch_order_sha256", "trainer.max_steps", "study"]
    (note,) = read_words(f"scores={planted(_threads=2).root}", f"allow=[{','.join(keys)}]").compared.footnotes
    assert note.keys == ("threads",)


def test_a_missing_and_an_edited_manifest_are_named(planted, study, read_words):
    planted()
    (path,) = study.root.glob("results/s__eos-causal/*/run/manifest.json")
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"threads": 5}))
    with pytest.raises(UserError, match=r"s__eos-causal.*manifest.json was edited by hand"):
        read_words(f"scores={study.root}")
    path.unlink()
    with pytest.raises(UserError, match=r"s__eos-causal/seed0@.* has no manifest.json"):
        read_words(f"scores={study.root}")
