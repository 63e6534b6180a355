"""`seeds=`: some seeds of a study alone, the others as if they were not there."""

import pytest

from cli.errors import UserError
from cli.remarks import key_remarks


def test_a_study_whose_last_seed_is_not_finished(planted, study, read_words, spread_scores):
    planted(seeds=(0, 1))
    wanted = read_words(f"scores={study.root}")
    study.run("eos-causal", spread_scores(0.9), seed=2)
    study.run("lastlayer-bi", spread_scores(0.9), seed=2, _status="running")
    with pytest.raises(UserError, match="also in seed"):
        read_words(f"scores={study.root}")
    found = read_words(f"scores={study.root}", "seeds=[0,1]")
    assert found.material.pairs.equals(wanted.material.pairs)
    assert found.notes == wanted.notes, "nothing is said of a seed that was not asked for"
    assert [run.seed for design in found.material.designs.values() for run in design.runs] == ["0", "1"] * 3
    one = read_words(f"scores={study.root}", "seeds=0")
    assert set(one.material.frame["seed"]) == {"0"}


def test_a_seed_that_is_not_there_is_named(planted, study, read_words, spread_scores):
    root = planted(seeds=(0, 1)).root
    with pytest.raises(UserError, match=r"seeds= names 3, which no score has. The scores have 0, 1."):
        read_words(f"scores={root}", "seeds=[1,3]")
    with pytest.raises(UserError, match=r"seeds= names 7, 8, which no score has. The scores have 0, 1."):
        read_words(f"scores={root}", "seeds=[7,8]")
    study.run("eos-causal", spread_scores(0.3), seed=2)
    with pytest.raises(UserError, match=r"lastlayer-bi lacks seed 2, multilayer-causal lacks seed 2. Train and score"):
        read_words(f"scores={root}", "seeds=[0,1,2]")
    assert read_words(f"scores={root}", "seeds=[0,2]", "allow=[seed]").material.frame["seed"].nunique() == 2


def test_a_design_without_any_of_the_seeds_is_named(planted, study, read_words, spread_scores, tmp_path):
    """It is left out, so that a page of a few seeds does not look like one of all designs."""
    root = planted(seeds=(0, 1)).root
    study.run("eos-bi", spread_scores(0.3), seed=2)
    said = "Left out, since they have no score with a seed of seeds=: eos-bi."
    assert said in read_words(f"scores={root}", "seeds=[0,1]").notes
    named = read_words(f"scores={root}", "seeds=[0,1]", "models=[eos-causal,lastlayer-bi]")
    assert said not in named.notes, "models= says which designs are wanted"
    path = tmp_path / "s.csv"
    rows = [f"{m},STS{t},{0.05 * t},{seed}" for m, seed in (("a", 0), ("b", 0), ("c", 1)) for t in range(12, 17)]
    path.write_text("\n".join(["model,task,score,seed", *rows]))
    assert said.replace("eos-bi", "c") in read_words(f"scores={path}", "seeds=0").notes


def test_a_csv_with_seeds(read_words, tmp_path):
    rows = [
        f"{m},STS{t},{0.05 * t + s},{seed}"
        for seed, s in (("0", 0.0), ("1", 0.05))
        for m in "ab"
        for t in range(12, 17)
    ]
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["model,task,score,seed", *rows]))
    found = read_words(f"scores={path}", "seeds=1")
    assert found.material.matrix.loc["STS12"].tolist() == pytest.approx([0.65, 0.65])
    path.write_text("\n".join(["model,task,score", *(row.rpartition(",")[0] for row in rows[:10])]))
    with pytest.raises(UserError, match=r"seeds= names 1, which no score has. The scores name no seeds."):
        read_words(f"scores={path}", "seeds=1")


def test_the_manual_says_what_designs_with_other_seeds_are(read_words, planted, study, spread_scores, tmp_path):
    """Compared where no manifest is, refused where one is or where a seed is asked for, left out without any."""
    (remark,) = [remark for key, _, remark in key_remarks("analysis") if key == "seeds"]
    seeds = {"a": "01", "b": "012", "c": "5"}
    rows = [f"{m},STS{t},{0.05 * t},{seed}" for m, of in seeds.items() for seed in of for t in range(12, 17)]
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["model,task,score,seed", *rows]))
    assert list(read_words(f"scores={path}").material.designs) == ["a", "b", "c"]
    assert "default: all, which designs with manifests must share unless allow=[seed]" in remark
    with pytest.raises(UserError, match="a lacks seed 2"):
        read_words(f"scores={path}", "seeds=[1,2]")
    assert list(read_words(f"scores={path}", "seeds=[1,2]", "allow=[seed]").material.designs) == ["a", "b"]
    assert (
        "a design that has some of them alone is refused unless allow=[seed], one that has none is left out" in remark
    )
    planted(seeds=(0, 1))
    study.run("eos-causal", spread_scores(0.3), seed=2)
    with pytest.raises(UserError, match=r"also in seed"):
        read_words(f"scores={study.root}")
    assert len(read_words(f"scores={study.root}", "allow=[seed]").material.designs) == 3
