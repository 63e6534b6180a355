"""Markdown and LaTeX say the same as the result, and their structure holds."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from analysis.grids.formats import count, equals, fraction, score, signed
from analysis.grids.grid import Cell, Grid, said_once
from analysis.grids.latex import escape
from analysis.grids.markdown import markdown_grid
from analysis.write import document, latex_document
from tests.analysis.three_seeds import run_seeds


def fill(study, seeds=1):
    """Three designs on eleven tasks, before and after training."""
    rng = np.random.default_rng(0)
    tasks = [f"STS{k}" for k in range(8)] + [f"Retrieval{k}" for k in range(3)]
    for k, design in enumerate(("eos-causal", "mean-bi", "multilayer-bi")):
        for trained in (True, False):
            scores = {t: float(s) for t, s in zip(tasks, rng.uniform(0.2, 0.3, 11), strict=True)}
            lift = {t: s + (0.2 * k if trained else 0) for t, s in scores.items()}
            run_seeds(study, design, lift, seeds, trained=trained)
    return study


@pytest.fixture(scope="module")
def filled(new_study):
    """Trained once: not to be changed."""
    return fill(new_study())


@pytest.fixture(scope="module")
def filled_by_seed(new_study):
    """The same as means of three seeds: not to be changed."""
    return fill(new_study(), 3)


@pytest.fixture(scope="module")
def result(filled, analyse_words):
    return analyse_words(f"scores={filled.root}")


@pytest.fixture(scope="module")
def by_three(filled_by_seed, analyse_words):
    return analyse_words(f"scores={filled_by_seed.root}")


def tables(markdown):
    """Return the Markdown tables as lists of rows of cells."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", markdown, flags=re.MULTILINE)
    return [[[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in b.splitlines()] for b in blocks]


def test_markdown_tables(result, by_three):
    by_type, pairs, *_, gain, costs = tables(document(result))
    assert [row[0] for row in by_type[2:]] == ["eos-causal", "mean-bi", "multilayer-bi"]
    assert by_type[0][:3] == ["Design", "Retrieval (n = 3)", "STS (n = 8)"]
    assert by_type[4][2] == f"**{score(result.material.means.loc['multilayer-bi', 'STS'])}**"
    assert by_type[3][2] == f"*{score(result.material.means.loc['mean-bi', 'STS'])}*"
    assert [row[1] for row in gain[2:6]] == ["before", "after", "gain", "typical gain"]
    assert gain[11][3] == ".00781", "eight tasks, all better: 2 / 2^8"
    assert costs[0] == ["Design", "Trainable", "Train FLOPs", "Train tok/s", "Peak MiB"]
    assert [row[1:] for row in costs[2:5:2]] == [["590 K", "2 T", "9,000", "500"], ["600 K", "2 T", "9,000", "500"]]
    assert pairs[2][0] == "mean-bi - eos-causal"
    assert pairs[2][1:3] == ["+0", "x 1.00"], "more trainable parameters, speed as a ratio"
    assert pairs[0][3] == "Mean"
    assert pairs[2][3] == signed(result.material.pairs.iloc[6]["difference"])
    assert pairs[2][5] == f"{signed(result.material.pairs.iloc[3]['hodges_lehmann'])} (.0234)"  # 3 x 2/2^8
    assert pairs[2][4].startswith(("+", "-"))
    assert "n.a." not in "".join(map(str, pairs)), "said once, in the caption"
    assert "n.a. in every row: Retrieval (n = 3) p >= .25." in document(result)
    (told,) = [table for table in tables(document(by_three)) if table[0] == pairs[0]][:1]
    row = by_three.material.pairs.iloc[3]
    assert told[2][0] == pairs[2][0]
    assert told[2][5] == f"{signed(row['hodges_lehmann'])}\\* (.0234, seeds {fraction(row['p_seeds_adjusted'])})"
    assert not any("*" in cell for row in pairs[2:] for cell in row), "one run each"
    for table in (by_type, gain, pairs, costs):
        assert len({len(row) for row in table}) == 1


def test_caption_names_test_family_and_marks(result):
    text = document(result)
    for words in ("exact Wilcoxon signed-rank", "family of 3", "Holm", "two-sided", "n.a. = so few tasks"):
        assert words in text
    assert "Retrieval n = 3: the smallest two-sided p is .25, so .05 cannot be reached whatever the scores" in text
    assert "at least 6 tasks are needed (7 after the correction)" in text
    assert "Every design has one seed: 0." in text
    assert "No star: it would be a claim about designs, which takes 3 seeds or more of each; p speaks of" in text
    assert "told of the designs" not in text


def test_caption_says_what_a_star_takes(by_three):
    text = document(by_three)
    for words in ("exact Wilcoxon signed-rank", "family of 3", "Holm", "two-sided", "n.a. = so few tasks"):
        assert words in text
    assert (
        "\\* = told of the designs: p at most .05 after Holm, over tasks, and of the mean over tasks and seeds" in text
    )
    assert "(\\*) = of these runs alone, or only before the correction" in text
    assert "Every design has 3 seeds, of which each score is the mean: 0, 1, 2." in text
    assert "claim about designs, which takes" not in text


@pytest.mark.parametrize("several", [False, True])
def test_nothing_is_printed_that_is_no_number_and_no_word_says_significant(result, by_three, several):
    of = by_three if several else result
    for text in (document(of), latex_document(of)):
        assert not re.search(r"\bnan\b", text, re.IGNORECASE)
        assert not re.search(r"\bsignificant", text, re.IGNORECASE)


def test_verdict(result):
    assert result.verdict.startswith("Verdict: multilayer-bi has the highest mean over the 11 tasks (")
    said = "The difference between these runs: p = .00293 after Holm over 3 pairs (before it p = .000977)"
    assert f", uncorrected). {said}; the smallest p" in result.verdict
    assert "the smallest p that so many tasks allow is .000977, corrected .00293." in result.verdict
    once = "No claim about designs: that takes 3 seeds or more of each, since runs of one design differ too"
    study = "in this program's own study, ten seeds of seven designs, p at most .05 over 56 tasks in 114 of 315 pairs"
    assert f"corrected .00293. {once} ({study})." in result.verdict
    assert "signific" not in result.verdict
    assert "told of the designs" not in result.verdict


def test_two_sentences_come_first(result, by_three, filled, analyse_words):
    """Who is ahead and how far, by the test; and whether that is told of the designs, with the p of both tests."""
    pair = by_three.material.pairs.iloc[-1]
    mean, over_seeds = result.material.means.iloc[2, 2], equals(pair["p_seeds_adjusted"])
    head = f"multilayer-bi has the highest mean of 3 designs over the 11 tasks ({score(mean)})"
    size = f"on the typical task multilayer-bi is {score(pair['hodges_lehmann'])} ahead of mean-bi"
    ends = f"[{signed(pair['hl_low'])}, {signed(pair['hl_high'])}]"
    told = f"p = .00293 over tasks and p {over_seeds} over tasks and 3 seeds"
    sentence = f"{head}; {size} (95 % interval {ends}, uncorrected)."
    assert by_three.summary == f"{sentence} This difference is told of the designs: {told} after Holm over 3 pairs."
    assert result.summary == (
        f"{sentence} This speaks of these runs alone (p = .00293 over tasks after Holm over 3 pairs): runs of one"
        " design differ, too (in this program's own study p at most .05 over 56 tasks in 114 of 315 pairs), and a claim"
        " about designs takes 3 seeds of each or more."
    )
    few = analyse_words(f"scores={filled.root}", "types=[Retrieval]").summary
    assert "No result on so few tasks could show that this is more than chance: p = " in few
    assert few.endswith("and the smallest possible is .75 after Holm over 3 pairs.")
    for of in (result, by_three):
        text = document(of)
        assert text.startswith(f"## Verdict\n\n{of.summary}\n")
        assert text.index("## Scores by task type") < text.index("## Notes") < text.index("## The verdict in full")


def test_verdict_of_three_seeds(result, by_three):
    last = by_three.material.pairs.iloc[-1]
    assert (last["first"], last["second"]) == ("mean-bi", "multilayer-bi")
    over_seeds = fraction(last["p_seeds_adjusted"])
    over_seeds = f"< {over_seeds[1:]}" if over_seeds.startswith("<") else f"= {over_seeds}"
    said = (
        "The difference is told of the designs: over tasks p = .00293 after Holm over 3 pairs (before it p = .000977);"
        f" over tasks and the 3 seeds p {over_seeds} after Holm over 3 pairs; the smallest p that so many tasks allow"
        " is .000977, corrected .00293."
    )
    assert f", uncorrected). {said}" in by_three.verdict
    assert "no claim" not in by_three.verdict
    assert by_three.verdict.partition(" The difference ")[0] == result.verdict.partition(" The difference ")[0]


def test_verdict_against_a_control(filled, filled_by_seed, result, analyse_words):
    line = analyse_words(f"scores={filled.root}", "against=eos-causal").verdict
    lead = result.material.matrix.mean()["multilayer-bi"] - result.material.matrix.mean()["eos-causal"]
    assert f" and {score(lead)} above eos-causal. On the typical task multilayer-bi is " in line
    assert " ahead of eos-causal (Hodges-Lehmann, 95 % interval [+" in line
    assert "The difference from eos-causal between these runs: p = .00195 after Holm over 2 pairs" in line
    of, means = analyse_words(f"scores={filled.root}", "against=eos-causal"), result.material.matrix.mean()
    above = (
        f", {score(means['multilayer-bi'] - means['mean-bi'])} above mean-bi, with which it was not compared; on the"
    )
    assert above in of.summary
    assert "No claim about designs: that takes 3 seeds" in line
    line = analyse_words(f"scores={filled_by_seed.root}", "against=eos-causal").verdict
    assert (
        "The difference from eos-causal is told of the designs: over tasks p = .00195 after Holm over 2 pairs" in line
    )
    assert "no claim" not in line


def test_verdict_where_nothing_can_be_shown(filled, analyse_words):
    line = analyse_words(f"scores={filled.root}", "types=[Retrieval]").verdict
    assert "the 3 Retrieval tasks" in line
    assert "cannot be shown to be more than chance with so few tasks after Holm over 3 pairs" in line
    assert "the smallest p they allow is .25, corrected .75; p = " in line


def test_designs_without_any_difference(study, analyse_words):
    for design in ("eos-causal", "mean-bi"):
        study.run(design, {f"STS{k}": 0.1 * k for k in range(8)})
    result = analyse_words(f"scores={study.root}")
    assert result.verdict.endswith("Their scores are equal on every task, so there is nothing to test.")
    assert result.summary.endswith("It scores as mean-bi does on every task, so there is nothing to test.")
    assert "STS n = 8: no two designs compared differ on any task, so there is nothing to test." in result.notes
    assert not any("Too few tasks" in note for note in result.notes)


def test_the_rule_of_a_narrow_column_is_one_that_markdown_reads():
    grid = Grid("x", "Caption.", ["Task type", "n"], [[Cell("STS"), Cell("2")]])
    assert markdown_grid(grid).splitlines()[1] == "| --------- | --: |"


@pytest.mark.parametrize(("fixture", "mark"), [("filled", ""), ("filled_by_seed", r"\(\\\*\)")])
def test_raw_p_is_kept_where_the_correction_closes_the_row(fixture, mark, request, analyse_words):
    root = request.getfixturevalue(fixture).root
    text = document(analyse_words(f"scores={root}", "types=[STS]", "alpha=0.01"))
    assert (
        "A family of 3 needs 10 tasks a type, or fewer pairs: against=\\<design>." in text
    )  # 3 x 2/2^9 > .01 > 3 x 2/2^10
    assert re.search(r"\+\.\d{4}" + mark + r" \(raw \.00781\)", text)
    assert "n.a. in every row: STS (n = 8) p >= .0234." in text


@pytest.mark.parametrize("several", [False, True])
def test_latex_structure(result, by_three, several):
    text = latex_document(by_three if several else result)
    found = re.findall(r"\\begin{tabular}{(\w+)}\n\\toprule\n(.*?)\\bottomrule", text, re.DOTALL)
    parted = text.count(r"\medskip") if several else 0  # a table too wide for the page is set in two parts
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == len(found) - parted
    assert [spec for spec, _ in found[:2]] == ["lrrrr", "lrrrrrr"]
    for spec, body in found:
        rows = [line for line in body.splitlines() if line != r"\midrule"]
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {len(spec)}
        assert all(row.endswith(r" \\") for row in rows)
    assert (r"$^{*}$" in text) == several
    assert r"n.a. in every row: Retrieval (n = 3) p $\geq$ .25." in text


def test_what_every_row_says_is_said_once():
    """A column of nothing but n.a. goes; a line that one row lacks stays."""
    gap, least = Cell("n.a."), "n.a.: p >= .25"
    first = [Cell("1", below=(least, "raw .3")), gap, Cell("2", below=("n.a.",)), Cell("3", mark="* n.a.")]
    other = [Cell("1", below=(least, "raw .4")), gap, Cell("2"), Cell("3", mark=" n.a.")]
    rows = [[Cell("a"), *first], [Cell("b"), *other]]
    once = said_once(Grid("x", "Caption.", ["Pair", "STS (n = 3)", "HL", "All", "Paper"], rows))
    assert once.header == ["Pair", "STS (n = 3)", "All", "Paper"]
    assert [cell.below for cell in once.rows[0]] == [(), ("raw .3",), ("n.a.",), ()]
    assert [row[3].mark for row in once.rows] == ["*", ""]
    assert once.caption == "Caption. n.a. in every row: STS (n = 3) p >= .25; HL; Paper."
    assert said_once(replace(once, rows=rows[:1])).rows == rows[:1], "one row is no column"
    of_p = said_once(
        Grid("x", "Caption.", ["Type", "p"], [[Cell(kind), Cell("1", below=("n.a.: p >= .05",))] for kind in "ab"])
    )
    assert of_p.caption == "Caption. n.a. in every row: p >= .05."


def test_the_reason_of_most_rows_is_said_once_where_others_have_another():
    rows = [[Cell(name), Cell("1", below=(f"n.a.: p >= {least}",))] for name, least in zip("abc", "223", strict=True)]
    once = said_once(Grid("x", "Caption.", ["Pair", "STS"], rows))
    assert once.caption == "Caption. n.a. in every row: STS p >= 2 (but where a row gives another)."
    assert [row[1].below for row in once.rows] == [(), (), ("n.a.: p >= 3",)]
    rows[1] = [Cell("b"), Cell("1")]
    assert said_once(Grid("x", "Caption.", ["Pair", "STS"], rows)).rows == rows, "b is not n.a."


def test_latex_escapes():
    assert escape(r"a_b & 50% #1 {x} ~^\ $") == (
        r"a\_b \& 50\% \#1 \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} \$"
    )
    assert escape("-.0123") == "$-$.0123"
    assert escape("bge-7 [-.01, -2], 1-2") == "bge-7 [$-$.01, $-$2], 1-2"
    assert escape("p >= .05 <.0001") == r"p $\geq$ .05 $<$.0001"
    assert escape("mean-bi - eos-causal") == "mean-bi $-$ eos-causal"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_latex_compiles(result, tmp_path):
    (tmp_path / "table.tex").write_text(latex_document(result))
    (tmp_path / "main.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{table}\\end{document}"
    )
    words = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "main.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_long_lists_are_cut(filled, analyse_words):
    text = document(analyse_words(f"scores={filled.root}", "rows_shown=2"))
    by_type, pairs, *_, details, gain, _ = tables(text)
    assert [row[0] for row in by_type[2:]] == ["mean-bi", "multilayer-bi"]
    assert len(gain) == 2 + 10
    assert len(pairs) == len(details) == 2 + 2
    assert "The first 2 of 3 pairs, those of the highest means; pairs.csv has all." in text


def test_numbers():
    assert [score(0.43125), score(1.0), score(-0.01234), score(0)] == [".4313", "1.0000", "-.0123", ".0000"]
    assert [signed(0.0129), signed(-0.004), signed(-1e-9)] == ["+.0129", "-.0040", "+.0000"]
    assert [fraction(v) for v in (0.25, 1.0, 2**-7, 1e-5, 0.0501)] == [".25", "1", ".00781", "<.0001", ".0501"]
    assert [count(v) for v in (None, 512, 41_943_040, 1_278_000_000)] == ["-", "512", "41.9 M", "1.28 B"]
    assert [count(v) for v in (999_499, 999_500, 999_999_999)] == ["999 K", "1 M", "1 B"]
