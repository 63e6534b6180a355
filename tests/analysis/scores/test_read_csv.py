"""Csv files, long and wide, and the scale of their scores."""

import gzip

import pandas as pd
import pytest

from analysis.write import write_files
from cli.errors import UserError

WIDE = "model,n_tasks,SciFact,BIOSSES,STS12,mean_all\nb,3,70,80,75,75\na,3,60,81,70,70.3\n"


@pytest.fixture
def run(tmp_path, read_words):
    def run_on(text, *words):
        path = tmp_path / "scores.csv"
        path.write_text(text)
        return read_words(f"scores={path}", *words)

    return run_on


def test_wide_in_percent(run):
    result = run(WIDE)
    assert list(result.compared.designs) == ["b", "a"]  # file order
    assert result.compared.matrix.loc["SciFact", "b"] == 0.7
    assert result.compared.types == {"Retrieval": ["SciFact"], "STS": ["BIOSSES", "STS12"]}
    assert any("0-100" in note for note in result.notes)
    assert any("n_tasks, mean_all" in note for note in result.notes)


def test_long_equals_wide_and_gz(run, tmp_path, read_words):
    lines = ["score,task,model"]
    for model, scores in (("b", (0.7, 0.8, 0.75)), ("a", (0.6, 0.81, 0.7))):
        lines += [f"{s},{t},{model}" for t, s in zip(("SciFact", "BIOSSES", "STS12"), scores, strict=True)]
    path = tmp_path / "long scores, final=1.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    long = read_words(f"scores={path}")
    assert long.compared.matrix.equals(run(WIDE).compared.matrix)


def test_long_with_type_and_seed(run):
    text = "model,task,score,type,seed,problem\n"
    text += "".join(
        f"{m},t{k},{s / 10},Own,{seed},none\n" for m, s in (("a", 1), ("b", 3)) for k in "xy" for seed in (0, 1)
    )
    result = run(text.replace("b,ty,0.3,Own,1", "b,ty,0.5,Own,1"))
    assert result.compared.types == {"Own": ["tx", "ty"]}
    assert result.compared.matrix.loc["ty", "b"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,SciFact\na,1\nb,0,2\n", r"scores\.csv cannot be read: .*line 3"),
        ("model,SciFact,BIOSSES\na,.1,.2\na,.1,.2\n", "line 3: model 'a' is there twice"),
        ("model,SciFact,BIOSSES\na,.1,inf\n", "line 2: the score of BIOSSES is 'inf', not a number"),
        ("model,SciFact,BIOSESS\na,.1,.2\n", "column 'BIOSESS' is no task that is known. Nearest: BIOSSES"),
        ("model,task,score\na,SciFact,.1\na,MyTask,.2\n", "line 3: the type of task 'MyTask' is not known"),
        ("model,task,score\na,SciFact,.1\na,SciFact,.1\n", "a has two scores on SciFact: .*line 2 and .*line 3"),
        ("model,task,score,type\na,x,.1,STS\nb,x,.1,Retrieval\n", "task x has the type Retrieval, elsewhere STS"),
        (
            "model,SciFact,BIOSSES\na,70,80\nb,.7,.8\n",
            r"scores are 0-100 \(largest 80\), but those of model b all lie within 1: the scales are mixed",
        ),
        ("model,SciFact,BIOSSES\na,70,101\nb,71,80\n", "is 101, outside -100 to 100"),
        ("model,SciFact\na,.7\nb,.8\n", "Only one task is left: SciFact"),
        ("model,task,score,seed\na,STS12,.1,0\na,STS13,.1,\n", "a has no seed here and one elsewhere"),
        ("model,task,score,seed\na,STS12,.1,0\na,STS12,.2,00\n", r"a \(seed 0\) has two scores on STS12"),
        ("model,task,score,seed\na,STS12,70,0\na,STS12,.7,1.0\n", "those of model a seed 1 all lie within 1"),
        ("model,task,score,Score\na,STS12,.1,.2\n", "has the column 'score' twice"),
        ("model,task,score,type\na,x,.1,All\n", "the type All stands for all tasks together. Give x another type"),
    ],
)
def test_bad_csv_is_told_in_one_line(run, text, message):
    with pytest.raises(UserError, match=message):
        run(text)


def test_what_may_be_on_another_scale_is_said_and_zero_is_a_score(run):
    notes = run("model,SciFact,BIOSSES\na,70,.8\nb,0,0\n").notes
    assert any(note.endswith("divided by 100; mend those of BIOSSES if they are 0-1.") for note in notes)


FACTORS = "model,pooler,attn,Step,task,type,score\n" + "".join(
    f"{model},{cells},t{k},Own,0.{(k * len(model)) % 7 + 1}\n"
    for model, cells in (("d", "mean,bi,1"), ("cc", "mean,causal,1"), ("bbb", "eos,bi,1"), ("eeee", "eos,causal,1"))
    for k in range(9)
)


def answered(result):
    """Every table of an analysis by name."""
    return {name: frame for section in result.sections for name, frame in section.frames.items()}


def test_columns_named_as_factors_give_their_effects_again(tmp_path, analyse_words):
    path = tmp_path / "scores.csv"
    path.write_text(FACTORS + "".join(f"none,,,,t{k},Own,0.9\n" for k in range(9)))
    result = analyse_words(f"scores={path}")
    assert list(result.compared.designs) == ["eeee", "bbb", "cc", "d", "none"]  # as `order` has it, not the file
    frames = answered(result)
    assert list(frames["effects"]["effect"]) == ["pooler", "attn", "pooler x attn"]
    means = frames["marginal_means"].set_index("level")["mean"]
    assert means["mean"] == pytest.approx(result.compared.matrix[["d", "cc"]].to_numpy().mean())
    write_files(result, tmp_path / "out")
    again = answered(analyse_words(f"scores={tmp_path / 'out' / 'scores.csv'}"))
    assert again["effects"].equals(frames["effects"])


def test_untrained_references_are_compared_only_where_they_are_named(tmp_path, analyse_words):
    head, *lines = FACTORS.splitlines()
    of_d = [line.replace(",", " (untrained),", 1) for line in lines if line.startswith("d")]
    path = tmp_path / "scores.csv"
    path.write_text(FACTORS)
    plain = answered(analyse_words(f"scores={path}"))
    path.write_text("\n".join([head, *lines, *(line.rpartition(".")[0] + ".05" for line in of_d)]))
    result = analyse_words(f"scores={path}")
    assert list(result.compared.designs) == ["eeee", "bbb", "cc", "d"]
    for name, frame in answered(result).items():
        pd.testing.assert_frame_equal(frame, plain[name])
    named = analyse_words(f"scores={path}", "models=[d-untrained,d]")
    assert list(named.compared.designs) == ["d (untrained)", "d"]


def test_a_factor_of_no_column_and_a_model_on_two_levels_are_refused(run):
    assert run(FACTORS, "factors=[pooler,step]").compared.designs["d"].factors == {"pooler": "mean", "step": "1"}
    with pytest.raises(UserError, match=r"^factors= names 'lora.r': no manifest .* no csv has such a column"):
        run(FACTORS, "factors=[pooler,attn,lora.r]")
    with pytest.raises(UserError, match="line 3: d has another pooler or attn than above"):
        run(FACTORS.replace("d,mean,bi,1,t1", "d,mean,causal,1,t1"))


def test_a_csv_without_factors_adds_seeds_to_one_that_has_them(tmp_path, read_words):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("\n".join(f"{line},{'seed' if not n else 0}" for n, line in enumerate(FACTORS.splitlines())))
    rows = [line.split(",") for line in FACTORS.splitlines()[1:]]
    other.write_text("model,task,type,score,seed\n" + "".join(f"{r[0]},{r[4]},Own,{r[6]},1\n" for r in rows))
    for order in ([one, other], [other, one]):
        result = read_words(f"scores=[{','.join(map(str, order))}]")
        assert list(result.compared.designs) == ["eeee", "bbb", "cc", "d"]
        assert set(result.compared.frame["seed"]) == {"0", "1"}


@pytest.mark.parametrize("word", ["split=dev", "subsets=[en,d*]", "revision=abc"])
def test_a_word_that_a_csv_can_choose_nothing_by_is_refused(run, word):
    with pytest.raises(UserError, match=r"choose among files of mteb. Leave them out, or .*scores\.csv apart"):
        run(WIDE, word)
