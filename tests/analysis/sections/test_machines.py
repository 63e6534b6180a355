"""`python -m analysis.machines`: planted spreads, a planted change of verdict, what is left out, what is refused."""

import sys

import numpy as np
import pandas as pd
import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from analysis.control.machines import named
from analysis.control.rule import NotControlledError
from analysis.machines import KEYS, main
from cli.errors import UserError
from tests.analysis.three_seeds import long_frame, run_seeds

TASKS = [f"t{k}" for k in range(30)]
DESIGNS = ["a", "b", "c"]


def scores(machine=0.0, seeds=3, shift=0.0, seed_sd=0.002):
    """[designs, tasks, seeds] around means .50, .50, .53; the first and third design move by `shift` and back.

    machine: the standard deviation of a run's mean over machines; two calls with the same one are two machines.
    """
    rng = np.random.default_rng(0)
    cube = np.array([0.5, 0.5, 0.53])[:, None, None] + rng.normal(0, 0.01, (3, 30, 1))
    cube = cube + rng.normal(0, seed_sd, (3, 1, seeds)) + rng.normal(0, 0.002, (3, 30, seeds))
    moved = np.random.default_rng(int(1e6 * machine)).normal(0, machine, (3, 1, seeds))
    return cube + moved + np.array([0, 0, -shift])[:, None, None]


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes <tmp>/<machine>/scores.csv."""

    def write(name, cube, designs=DESIGNS, tasks=TASKS):
        path = tmp_path / name / "scores.csv"
        path.parent.mkdir()
        frame = long_frame(cube, designs, tasks).assign(type="STS").rename(columns={"design": "model"})
        frame.to_csv(path, index=False)
        return path

    return write


@pytest.fixture
def command(monkeypatch, capsys):
    """Return a function: paths and words -> what is printed."""

    def run(paths, *words):
        monkeypatch.setattr(sys, "argv", ["machines", f"scores=[{','.join(map(str, paths))}]", *map(str, words)])
        main()
        return capsys.readouterr().out

    return run


def test_the_spread_over_machines_is_that_of_the_runs_and_the_verdict_stays(folder, command, tmp_path):
    cubes = {"usual": scores(), "other": scores(0.0004), "third": scores(0.0005)}
    paths = [folder(name, cube) for name, cube in cubes.items()]
    printed = command(paths, f"out={tmp_path / 'out'}")
    table = pd.read_csv(tmp_path / "out" / "machines.csv").set_index("design")
    means = np.stack([cube.mean(axis=1) for cube in cubes.values()])  # machines, designs, seeds
    for k, design in enumerate(DESIGNS):
        assert table.loc[design, "sd_machines"] ** 2 == pytest.approx(means[:, k].var(axis=0, ddof=1).mean())
        assert table.loc[design, "sd_seeds"] ** 2 == pytest.approx(means[:, k].var(axis=1, ddof=1).mean())
    assert table.loc["all designs", "word"] == "smaller"
    assert "The verdict is the same on all 3 machines (3 pairs: told apart 2," in printed
    assert (tmp_path / "out" / "machines.md").read_text() in printed
    assert "tabular" in (tmp_path / "out" / "machine_pairs.tex").read_text()


def test_a_planted_change_of_verdict_is_found(folder, command, tmp_path):
    paths = [folder("usual", scores()), folder("second", scores(0.0001)), folder("turned", scores(0.0002, shift=0.03))]
    printed = command(paths, f"out={tmp_path / 'out'}")
    pairs = pd.read_csv(tmp_path / "out" / "machine_pairs.csv").set_index(["first", "second", "machine"])
    assert pairs.loc[("b", "c"), "same"].tolist() == [False] * 3
    assert pairs.loc[("a", "b"), "same"].all()
    assert pairs.loc[("b", "c", "usual"), "verdict"] == "told apart, c ahead"
    usual, turned = (pairs.loc[("b", "c", name), "difference"] for name in ("usual", "turned"))
    assert turned == pytest.approx(usual - 0.03, abs=0.001)
    assert "The verdict changes with the machine for 2 of 3 pairs" in printed
    assert "c - b (told apart, c ahead on usual, second; not told on turned)" in printed


def test_the_other_way_is_another_verdict(folder, command):
    printed = command([folder("usual", scores()), folder("turned", scores(0.0002, shift=0.06))])
    assert "c - b (told apart, c ahead on usual; told apart, b ahead on turned)" in printed


def test_the_order_of_designs_in_a_file_is_none_of_their_pairs(folder, command):
    turned = folder("turned", scores(0.0004)[[2, 0, 1]], designs=["c", "a", "b"])
    beside = folder("beside", scores(0.0004))
    usual = folder("usual", scores())
    of_turned, of_beside = (command([usual, path]).replace("turned", "beside") for path in (turned, beside))
    assert "The verdict is the same on both machines (3 pairs: told apart" in of_turned
    assert of_turned == of_beside


def test_against_one_design(folder, command):
    printed = command([folder("usual", scores()), folder("other", scores(0.0004))], "against=b")
    assert "(2 pairs: told apart 1," in printed
    assert "| c - a " not in printed


def test_what_not_all_have_is_left_out_and_named(folder, command):
    one = folder("one", scores(seeds=4), tasks=TASKS)
    other = folder("other", scores(0.0004)[:2, :29], designs=["a", "b"], tasks=TASKS[:29])
    printed = command([one, other])
    left = "run a seed 3, run b seed 3, run c seed 0, run c seed 1, run c seed 2, run c seed 3, task t29"
    assert f"Not on every machine, so left out: {left}." in printed
    assert "over all 29 tasks" in printed
    assert "(1 pair:" in printed


def test_nothing_is_claimed_with_two_seeds(folder, command):
    printed = command([folder("one", scores(seeds=2)), folder("other", scores(0.0004, seeds=2))])
    assert printed.splitlines()[-1].startswith("Nothing is claimed: that takes 3 seeds")
    assert "told apart" not in printed
    assert "smaller |" not in printed


def test_one_design_has_spreads_alone(folder, command):
    printed = command([folder("one", scores()), folder("other", scores(0.0004))], "models=[a]")
    assert "Verdicts by machine" not in printed
    assert "The verdict" not in printed
    assert printed.splitlines()[-1].startswith("Another machine moves the mean of a run by")


def test_the_same_scores_have_no_spread_over_machines(folder, command):
    printed = command([folder("one", scores()), folder("other", scores())])
    assert "by a standard deviation of .00000, another seed by" in printed
    assert "the first is smaller (ratio .00" in printed


def test_copies_of_one_run_have_no_spread_that_a_machine_could_be_held_against(folder, command):
    copied = [cube[:, :, :1].repeat(3, axis=2) for cube in (scores(), scores(0.0004))]
    printed = command([folder("usual", copied[0]), folder("other", copied[1])])
    assert "Each design scores alike with every seed" in printed
    assert "nan" not in printed


def test_too_little_in_common_is_refused_in_one_line(folder, command):
    usual, one_task = folder("usual", scores()), folder("short", scores()[:, :2], tasks=["t0", "other"])
    with pytest.raises(UserError, match=r"usual, .* share 1 task, too few to compare"):
        command([usual, one_task])
    with pytest.raises(UserError, match=r"share no run, too few"):
        command([usual, folder("foreign", scores(), designs=["x", "y", "z"])])
    with pytest.raises(UserError, match=r"Name two folders of scores or more, each once"):
        command([usual])
    with pytest.raises(UserError, match=r"each once"):
        command([usual, usual])
    with pytest.raises(UserError, match="There is no key 'report'"):
        command([usual, one_task], "report=true")


def test_machines_have_the_names_in_which_their_folders_differ(tmp_path):
    runs = tmp_path / "runs"
    folders = tuple(runs / name / "embedded" / "scores" for name in ("usual", "avx2"))
    assert list(named(folders)) == ["usual", "avx2"]
    assert list(named((tmp_path / "a.csv", tmp_path / "b.csv"))) == ["a.csv", "b.csv"]
    crossed = tuple(tmp_path / one / other for one in "ab" for other in "cd")
    assert list(named(crossed)) == list(map(str, crossed))


SETS = {"torch": "AVX512", "onednn": None, "numba": "znver4"}
AVX2 = {"torch": "AVX2", "onednn": "AVX2", "numba": "haswell, features of that name"}


@pytest.fixture
def studies(new_study, spread_scores):
    """Return a function: the changes of each machine's manifests -> the folders of their scores."""

    def write(*machines):
        made = [new_study() for _ in machines]
        for study, changes in zip(made, machines, strict=True):
            for k, design in enumerate(("eos-causal", "mean-bi")):
                run_seeds(study, design, spread_scores(0.3 + 0.1 * k), 3, **changes)
        return [study.root for study in made]

    return write


def of(sets):
    return {"_machine__instruction_sets": sets, "_evaluation__encoder__instruction_sets": sets}


def test_the_machine_may_differ_and_is_stated(studies, command):
    older = {"_machine__processor": "arm"}
    printed = command(studies(of(SETS), of(AVX2), older))
    assert "x86, 4 cores, torch AVX512, oneDNN without a limit, passes compiled for znver4." in printed
    assert "torch AVX2, oneDNN up to AVX2, passes compiled for haswell, features of that name." in printed
    assert "arm, 4 cores, instruction sets not written down." in printed
    assert "of one kind" not in printed
    assert "The verdict is the same on all 3 machines (1 pair: told apart 1," in printed


def test_folders_of_one_kind_of_machine_are_named(studies, command):
    printed = command(studies(of(SETS), of(SETS)))
    assert "are machines of one kind" in printed


def test_a_machine_that_differs_in_more_is_refused_unless_allowed(studies, command):
    other = of(AVX2) | {"_precision": "fp32", "_code__modules__encoders.encoder": "c" * 64}
    places = studies(of(SETS), other)
    with pytest.raises(
        NotControlledError, match=r"in pooler, attn, machine but also in code.modules.encoders.encoder, precision"
    ):
        command(places)
    with pytest.raises(UserError, match=r"allow= names 'presicion', a key that no run has\. Nearest: precision"):
        command(places, "allow=[presicion,code.modules]")
    printed = command(places, "allow=[precision,code.modules]")
    assert "precision: " in printed
    assert "(allowed)" in printed


def test_one_name_of_two_designs_is_refused(new_study, spread_scores, command):
    """Each folder has one value of a factor, so that no name has it."""
    made = [new_study(), new_study()]
    for study, rank in zip(made, (8, 16), strict=True):
        for k, design in enumerate(("eos-causal", "mean-bi")):
            run_seeds(study, design, spread_scores(0.3 + 0.1 * k), 3, **{"_config__lora__r": rank})
    places = [study.root for study in made]
    with pytest.raises(NotControlledError, match=r"but also in lora\.r"):
        command(places)
    with pytest.raises(UserError, match=r"is not the same design on all machines, for not the same lora\.r\. Give"):
        command(places, "factors=[pooler,attn,lora.r]")


def test_what_makes_no_claim_on_one_machine_neither_stays_nor_changes(folder, command):
    cubes = [scores(), scores(0.0004)]
    cubes[0][:2] = cubes[0][:2, :, :1]
    for order in ((0, 1), (1, 0)):
        places = [folder(f"m{order[0]}{k}", cubes[k]) for k in order]
        assert "(2 pairs: " in command(places)


def result_of(here, others, *words):
    """What `python -m analysis machines=` makes of the folders."""
    return analyse(read_arguments([f"scores={here}", f"machines=[{','.join(map(str, others))}]", *words]))


def machines_of(result):
    return next(one for one in result.answers if one.name == "machines")


def test_the_report_sets_the_same_beside_its_own_tables(folder, command, tmp_path):
    paths = [folder("usual", scores()), folder("other", scores(0.0004)), folder("turned", scores(0.0005, shift=0.03))]
    command(paths, f"out={tmp_path / 'out'}")
    given = machines_of(result_of(paths[0], paths[1:]))
    for name in ("machines", "machine_pairs"):
        of_command = pd.read_csv(tmp_path / "out" / f"{name}.csv")
        pd.testing.assert_frame_equal(given.frames[name].reset_index(drop=True), of_command, check_dtype=False)
    assert given.notes[0] in (tmp_path / "out" / "machines.md").read_text()
    renamed = machines_of(result_of(paths[0], paths[1:], "rename={a: Model 1}")).frames["machines"]
    assert renamed["design"].tolist() == ["all designs", "Model 1", "b", "c"]


def test_the_first_screen_says_whether_its_verdict_stays(folder):
    usual, other = folder("usual", scores()), folder("other", scores(0.0004))
    turned = folder("turned", scores(0.0005, shift=0.03))
    assert "Its verdict is the same on both machines." in result_of(usual, [other]).summary
    changed = result_of(usual, [other, turned]).summary
    assert "Its verdict changes with the machine: told apart, c ahead on usual, other; not told on turned." in changed
    assert "machine" not in result_of(usual, [turned], "seeds=[0,1]").summary  # no claim, so none that stays


def test_what_the_report_does_not_show_counts_on_no_machine(folder):
    shown = ["models=[a,c]", "seeds=[0,1,2]", "tasks=[t1?]"]
    usual = folder("usual", scores(seeds=4))
    more = machines_of(result_of(usual, [folder("more", scores(0.0004, seeds=4))], *shown))
    alone = folder("alone", scores(0.0004, seeds=4)[[0, 2]][:, 10:20, :3], designs=["a", "c"], tasks=TASKS[10:20])
    fewer = machines_of(result_of(usual, [alone], *shown))
    assert not any("left out" in note for note in more.notes)
    assert more.frames["machines"].equals(fewer.frames["machines"])


def test_a_machine_without_the_designs_is_refused_in_one_line(folder, tmp_path):
    usual, foreign = folder("usual", scores()), folder("foreign", scores(), designs=["x", "y", "z"])
    with pytest.raises(UserError, match=r"foreign/scores\.csv has scores of none of a, b, c\. It has x, y, z\."):
        result_of(usual, [foreign])
    with pytest.raises(UserError, match=r"machines=.*absent: there is no such file or folder"):
        result_of(usual, [tmp_path / "absent"])
    with pytest.raises(UserError, match="each once"):
        result_of(usual, [usual])


def test_allow_lets_a_key_through_that_machines_alone_differ_in(studies):
    here, other = studies(of(SETS), of(AVX2) | {"_precision": "fp32"})
    with pytest.raises(NotControlledError, match="but also in precision"):
        result_of(here, [other])
    result = result_of(here, [other], "allow=[precision]")
    assert any("precision: " in note and "(allowed)" in note for note in machines_of(result).notes)
    assert not any("let nothing through" in note for note in result.notes)


def test_the_help_has_the_keys_that_it_takes(command):
    text = command([], "--help")
    assert all(f"\n  {key} " in text for key in KEYS)
