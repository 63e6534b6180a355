"""Folders of mteb's layout: ours with manifests, and foreign ones."""

import pytest

from cli.errors import UserError


def by_task(result, design):
    rows = result.compared.frame[result.compared.frame["design"] == design]
    return dict(zip(rows["task"], rows["score"], strict=True))


@pytest.mark.parametrize("where", ["runs/results", "runs", "."])
def test_found_from_any_height(study, read_words, spread_scores, tmp_path, where):
    study.run("eos-causal", spread_scores(0.3))
    study.run("mean-bi", spread_scores(0.4))
    result = read_words(f"scores={tmp_path / where}")
    assert list(result.compared.designs) == ["eos-causal", "mean-bi"]
    assert by_task(result, "mean-bi") == spread_scores(0.4)
    assert {kind: len(tasks) for kind, tasks in result.compared.types.items()} == {"Retrieval": 8, "STS": 8}


def test_seeds_are_averaged_and_counted(study, analyse_words, spread_scores):
    for seed, base in enumerate((0.2, 0.3, 0.7)):
        study.run("eos-causal", spread_scores(base), seed=seed)
        study.run("mean-bi", spread_scores(base + 0.1), seed=seed)
    result = analyse_words(f"scores={study.root}")
    assert result.compared.matrix.loc["STS0", "eos-causal"] == pytest.approx((0.208 + 0.308 + 0.708) / 3)
    assert "Every design has 3 seeds: 0, 1, 2." in result.sections[0].notes


def test_a_seed_twice_names_both_folders(study, read_words, spread_scores):
    one = study.run("eos-causal", spread_scores(0.2))
    two = one.rename(one.with_name("seed0@zzzz"))
    again = study.run("eos-causal", spread_scores(0.2))
    study.run("mean-bi", spread_scores(0.3))
    with pytest.raises(UserError, match="Two folders hold seed 0 of eos-causal") as error:
        read_words(f"scores={study.root}")
    assert str(again) in str(error.value)
    assert str(two) in str(error.value)
    assert len(read_words(f"scores={study.root}", "revision=seed0@zzzz").compared.designs) == 2


def test_a_run_scored_in_two_ways_is_two_designs_of_that_factor(study, read_words, spread_scores):
    whole = study.run("eos-causal", spread_scores(0.3), evaluation__max_length_share=1.0)
    whole.rename(whole.with_name("seed0@zzzz"))
    study.run("eos-causal", spread_scores(0.2), evaluation__max_length_share=0.5)
    with pytest.raises(UserError, match=r"Two folders hold seed 0 .*evaluation\.<key>"):
        read_words(f"scores={study.root}")
    result = read_words(f"scores={study.root}", "factors=[pooler,attn,evaluation.max_length_share]")
    halved, first = result.compared.designs
    assert (halved, first) == ("eos-causal max_length_share=0.5", "eos-causal max_length_share=1.0")
    assert by_task(result, halved) == spread_scores(0.2)
    assert by_task(result, first) == spread_scores(0.3)


def test_foreign_folder(tmp_path, read_words, task_writer):
    for model, shift in (("org__one", 0.0), ("org__two", 0.1)):
        for task in ("SciFact", "STSBenchmark", "BIOSSES"):
            task_writer(tmp_path / "results" / model / "abc", task, 0.5 + shift)
        task_writer(tmp_path / "results" / model / "abc", "STS17", {"en-en": 0.2 + shift, "es-es": 0.4 + shift})
    result = read_words(f"scores={tmp_path}")
    assert result.compared.types == {"Retrieval": ["SciFact"], "STS": ["BIOSSES", "STS17", "STSBenchmark"]}
    assert by_task(result, "org__one")["STS17"] == pytest.approx(0.3)
    narrow = read_words(f"scores={tmp_path}", "subsets=[default,en-*]")
    assert by_task(narrow, "org__two")["STS17"] == pytest.approx(0.3)


def test_experiments_and_revisions(tmp_path, read_words, task_writer):
    for place in ("one/r1", "one/r1/experiments/dim_256", "one/1234"):
        for task in ("SciFact", "BIOSSES"):
            task_writer(tmp_path / "results" / place, task, 0.5)
    with pytest.raises(UserError, match=r"Two folders hold one: .*revision="):
        read_words(f"scores={tmp_path}")
    assert list(read_words(f"scores={tmp_path}", "revision=r1").compared.designs) == ["one", "one/dim_256"]
    with pytest.raises(UserError, match=r"no revision 'r9'\. It has 1234, r1"):
        read_words(f"scores={tmp_path}", "revision=r9")


def test_empty_folder_and_unknown_task(tmp_path, read_words, task_writer):
    with pytest.raises(UserError, match="No scores below"):
        read_words(f"scores={tmp_path}")
    for model in ("one", "two"):
        task_writer(tmp_path / "results" / model / "r", "SciFact", 0.5)
        task_writer(tmp_path / "results" / model / "r", "SciFacts", 0.5)
    with pytest.raises(UserError, match=r"'SciFacts' is not known. Nearest: .*SciFact.*tasks.json beside"):
        read_words(f"scores={tmp_path}")
    (tmp_path / "tasks.json").write_text('{"SciFacts": {"type": "Probing"}}')
    assert "Probing" in read_words(f"scores={tmp_path}").compared.types
