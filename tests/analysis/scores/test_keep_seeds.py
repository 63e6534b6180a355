"""`seeds=`: some seeds of a study alone, the others as if they were not there."""

import pytest

from cli.errors import UserError


def test_a_study_whose_last_seed_is_not_finished(planted, study, read_words, spread_scores):
    planted(seeds=(0, 1))
    wanted = read_words(f"scores={study.root}")
    study.run("eos-causal", spread_scores(0.9), seed=2)
    study.run("lastlayer-bi", spread_scores(0.9), seed=2, _status="running")
    with pytest.raises(UserError, match="also in seed"):
        read_words(f"scores={study.root}")
    found = read_words(f"scores={study.root}", "seeds=[0,1]")
    assert found.compared.pairs.equals(wanted.compared.pairs)
    assert found.notes == wanted.notes, "nothing is said of a seed that was not asked for"
    assert [run.seed for design in found.compared.designs.values() for run in design.runs] == ["0", "1"] * 3


def test_a_seed_that_is_not_there_is_named(planted, study, read_words, spread_scores):
    root = planted(seeds=(0, 1)).root
    with pytest.raises(UserError, match=r"seeds= names 3, which no score has. The scores have 0, 1."):
        read_words(f"scores={root}", "seeds=[1,3]")
    study.run("eos-causal", spread_scores(0.3), seed=2)
    with pytest.raises(UserError, match=r"lastlayer-bi lacks seed 2, multilayer-causal lacks seed 2. Train and score"):
        read_words(f"scores={root}", "seeds=[0,1,2]")
    assert read_words(f"scores={root}", "seeds=[0,2]", "allow=[seed]").compared.frame["seed"].nunique() == 2


def test_a_csv_with_seeds(read_words, tmp_path):
    seeds = {"a": "01", "b": "012", "c": "5"}
    rows = [f"{m},STS{t},{0.05 * t + int(s) / 20},{s}" for m, of in seeds.items() for s in of for t in range(12, 16)]
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["model,task,score,seed", *rows]))
    assert list(read_words(f"scores={path}").compared.designs) == ["a", "b", "c"], "without manifests all compare"
    found = read_words(f"scores={path}", "seeds=1")
    assert found.compared.matrix.loc["STS12"].to_dict() == pytest.approx({"a": 0.65, "b": 0.65})
    assert "Left out, since they have no score with a seed of seeds=: c." in found.notes
    with pytest.raises(UserError, match="a lacks seed 2"):
        read_words(f"scores={path}", "seeds=[1,2]")
    path.write_text("\n".join(["model,task,score", *(row.rpartition(",")[0] for row in rows if row[-1] == "1")]))
    with pytest.raises(UserError, match=r"seeds= names 1, which no score has. The scores name no seeds."):
        read_words(f"scores={path}", "seeds=1")
