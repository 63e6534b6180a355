"""Names, unit and digits are the author's to set: every rendering follows, the files of data stay as they are."""

import json
import re
from itertools import combinations_with_replacement
from statistics import mean, median

import numpy as np
import pytest

from analysis.grids.formats import MINUS, Numbers, typeset
from analysis.write import draw, write_files
from cli.errors import UserError
from tests.analysis.three_seeds import run_seeds, write_long

NAMES = {"eos-causal": "Model 1", "mean-bi": "A mean", "multilayer-bi": "Model 5"}  # sorted otherwise than their own
WORDS = ("unit=percent", "digits=1", "rename={eos-causal: Model 1, mean-bi: A mean, multilayer-bi: Model 5}")
TASKS = [f"{kind}{k}" for kind in ("STS", "Retrieval") for k in range(8)]


def walsh(differences):
    """The Hodges-Lehmann estimate: the median of the averages of every two differences."""
    return median(mean(pair) for pair in combinations_with_replacement(differences, 2))


@pytest.fixture(scope="module")
def root(new_study):
    """Three designs, three seeds, before and after training."""
    study, rng = new_study(), np.random.default_rng(3)
    for k, design in enumerate(NAMES):
        for trained in (True, False):
            values = rng.uniform(0.3, 0.5, len(TASKS)) + 0.03 * k * trained
            run_seeds(study, design, dict(zip(TASKS, values.tolist(), strict=True)), 3, trained=trained)
    return study.root


@pytest.fixture(scope="module")
def written(root, analyse_words, tmp_path_factory):
    """Return words -> (result, folder): the usual files, and those in the author's words."""
    runs = {}
    for words in ((), WORDS):
        folder = tmp_path_factory.mktemp("out")
        runs[words] = (
            analyse_words(f"scores={root}", "report=true", "figures=false", "against=eos-causal", *words),
            folder,
        )
        write_files(*runs[words])
    return runs


def test_files_of_data_stay_as_they_are(written):
    (_, plain), (_, worded) = written[()], written[WORDS]
    tables = sorted(path.name for path in plain.glob("*.csv"))
    assert len(tables) > 15
    for name in tables:
        assert (worded / name).read_bytes() == (plain / name).read_bytes(), name
    one, other = (json.loads((folder / "result.json").read_text()) for folder in (plain, worded))
    assert other["settings"]["rename"] == NAMES
    assert other["settings"]["unit"] == "percent"
    for value in (one, other):
        for key in ("settings", "verdict", "captions", "notes"):
            value.pop(key)
        for section in value["sections"]:
            section.pop("notes")
    assert other == one


def test_no_rendering_has_the_former_names(written):
    result, folder = written[WORDS]
    texts = {path.name: path.read_text() for path in folder.glob("*") if path.suffix in (".md", ".tex", ".html")}
    assert {"table.md", "table.tex", "pairs.tex", "report.html"} <= texts.keys()
    for name, text in texts.items():
        assert not any(own in text for own in NAMES), name
    for name in ("table.md", "table.tex", "report.html"):
        assert all(new in texts[name] for new in NAMES.values()), name
    assert "Model 5" in result.verdict
    assert "Model 5" in result.summary
    for drawing in draw(result):
        labels = " ".join(text.get_text() for text in drawing.figure.findobj(lambda item: hasattr(item, "get_text")))
        assert not any(own in f"{labels} {drawing.caption} {drawing.alt}" for own in NAMES), drawing.name
    assert "Model 5 (untrained)" in result.material.references


def test_scores_and_differences_are_those_by_hand(tmp_path, analyse_words):
    rng = np.random.default_rng(0)
    first = rng.uniform(0.3, 0.5, 16)
    second = first + rng.normal(-0.02, 0.01, 16)
    path = write_long(tmp_path / "s.csv", [first, second], "ab", dict.fromkeys(TASKS, "STS"), 3)
    result = analyse_words(f"scores={path}", "unit=percent", "digits=1", "rope=0.007", "delta=0.015", "report=true")
    folder = tmp_path / "out"
    write_files(result, folder)
    differences = (second - first).tolist()
    means = [f"{100 * mean(values.tolist()):.1f}" for values in (first, second)]
    gap, typical = 100 * mean(differences), 100 * walsh(differences)
    size = f"{abs(typical):.1f}"
    assert gap < 0
    assert size not in means
    markdown, latex, page = ((folder / name).read_text() for name in ("table.md", "table.tex", "report.html"))
    assert f" **{means[0]}** |" in markdown
    assert f"a & \\textbf{{{means[0]}}}" in latex
    assert f"<strong>{means[0]}</strong>" in page
    assert f"<u>{means[1]}</u>" in page
    assert f"| b - a                 | {gap:.1f} |" in markdown
    assert rf"| {typical:.1f}\* (" in markdown
    assert f">{MINUS}{size}<sup>*</sup>" in page
    assert f"$-${size}$^{{*}}$" in latex
    for text in (result.summary, result.verdict, page):
        assert f"a is {size} ahead of b" in text
        assert f"({means[0]})" in text
    assert "equivalent within 0.7" in markdown
    assert "equivalent within 0.7" in page
    assert "Power at 1.5" in markdown
    of_scores = sum(len(answer.grids) for answer in result.answers if answer.of_scores)
    assert markdown.count("are times 100") == latex.count("are times 100") == of_scores > 5
    forest, *others = draw(result)
    assert f" -{size}, b minus a" in forest.alt or f" +{size}, b minus a" in forest.alt
    assert all(one.caption.endswith("times 100.") for one in (forest, *others) if one.name != "critical_difference")
    (axes,) = forest.figure.axes
    for tick, text in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        assert float(text.get_text().replace(MINUS, "-")) == pytest.approx(100 * tick, abs=1e-9)


@pytest.mark.parametrize("unit", ["fraction", "percent"])
def test_published_tables_out_of_100_come_to_the_same(tmp_path, analyse_words, unit):
    scores, pages = np.random.default_rng(1).uniform(0.2, 0.6, (2, 16)).round(6), []
    for scale in (1, 100):
        path = write_long(tmp_path / f"s{scale}.csv", scale * scores, "ab", dict.fromkeys(TASKS, "STS"))
        result = analyse_words(f"scores={path}", f"unit={unit}", "digits=3")
        pages.append([result.summary, [grid.rows for grid in result.grids()]])
    assert pages[0] == pages[1]
    shown = f"{(100 if unit == 'percent' else 1) * scores[0].mean():.3f}"
    assert (shown if unit == "percent" else shown.lstrip("0")) in str(pages[0])


def test_numbers():
    percent, fraction = Numbers(True, 2), Numbers()
    assert [percent.score(0.43125), percent.signed(0.00434), percent.signed(-0.00001)] == ["43.12", "+0.43", "+0.00"]
    assert percent.interval(-0.012, 0.1) == "[-1.20, +10.00]"
    assert fraction.interval(-0.012, 0.1) == "[-.0120, +.1000]"
    assert [percent.margin(0.005), percent.margin(0.07), fraction.margin(0.005)] == ["0.5", "7", ".005"]
    assert percent.interval(float("nan"), 0.0) == "n.a."
    assert Numbers(digits=0).signed(0.4) == "+0"


def test_signs_are_set_alike():
    assert typeset("b - a: -.0123, 0.0 +- 0.5 %, [-1.20, +.1], t-5") == (
        f"b {MINUS} a: {MINUS}.0123, 0.0 \N{PLUS-MINUS SIGN} 0.5 %, [{MINUS}1.20, +.1], t-5"
    )
    assert typeset("(W+ - W-) / (W+ + W-)") == f"(W+ {MINUS} W{MINUS}) / (W+ + W{MINUS})"


def test_a_file_of_names_and_names_new_and_old_choose(root, tmp_path, analyse_words):
    path = tmp_path / "names.yaml"
    path.write_text("eos-causal: 'Model 1: the last token'\nmultilayer-bi: 5\n")
    result = analyse_words(f"scores={root}", f"rename={path}", "models=[eos-causal,'5']", "against=eos-causal")
    assert list(result.material.designs) == ["Model 1: the last token", "5"]
    assert result.material.control == "Model 1: the last token"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{eos-casual: Model 1}", "'eos-casual', which is not among the scores. Nearest: eos-causal"),
        ("{eos-causal: X, mean-bi: X}", "gives two designs one name"),
        ("{eos-causal: mean-bi}", "gives two designs one name"),
        ("{eos-causal:Model 1}", "pairs no names"),
        ("{eos-causal: [a]}", "pairs no names"),
        ("nowhere.yaml", "nowhere.yaml is not there"),
    ],
)
def test_what_is_no_new_name_is_refused(root, analyse_words, words, message):
    with pytest.raises(UserError, match="rename=") as refused:
        analyse_words(f"scores={root}", f"rename={words}")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("word", ["unit=percents", "digits=13", "digits=-1"])
def test_units_and_digits_have_limits(root, analyse_words, word):
    with pytest.raises(UserError, match=word):
        analyse_words(f"scores={root}", word)


@pytest.fixture
def best_last(tmp_path, analyse_words):
    """Twelve models, the best last in the alphabet, in a table with room for three pairs: result and its folder."""
    scores = 0.4 + 0.01 * np.arange(12)[:, None] + np.random.default_rng(2).normal(0, 0.001, (12, 16))
    types = {task: task.rstrip("0123456789") for task in TASKS}
    path = write_long(tmp_path / "s.csv", scores, [f"m{k:02}" for k in range(12)], types)
    return analyse_words(f"scores={path}", "rows_shown=3"), tmp_path


def test_every_table_that_is_cut_shows_the_best(best_last):
    result, _ = best_last
    cut = {grid.name: grid for grid in result.grids() if " of 66 pairs" in grid.rest}
    assert {"pairs", "mean-over-types", "equivalence", "pair-details"} <= cut.keys()
    for name, grid in cut.items():
        assert {row[0].text for row in grid.rows} == {"m10 - m09", "m11 - m09", "m11 - m10"}, name
        assert "3 of 66 pairs, those of the highest means; " in grid.rest


def test_a_caption_in_a_paper_names_no_file_and_rows_say_what_is_not_shown(best_last):
    result, folder = best_last
    write_files(result, folder / "out")
    latex = (folder / "out" / "table.tex").read_text()
    captions = [line for line in latex.splitlines() if line.startswith(r"\caption{")]
    assert sum("The first 3 of 66 pairs, those of the highest means.}" in line for line in captions) >= 4
    assert not any(".csv" in line for line in captions)


def test_no_cell_says_its_number_twice(root, analyse_words):
    result = analyse_words(f"scores={root}", "correction=holm", "models=[eos-causal,mean-bi]")
    grids = {grid.name: grid for grid in result.grids()}
    for row in grids["best-by-type"].rows:
        assert f"raw {row[3].text}" not in row[3].below


def test_how_a_file_was_read_is_said_last_and_no_folder_of_the_author_is_named(best_last):
    result, folder = best_last
    assert result.notes[-1].startswith("s.csv: scores were read as 0-1 (largest 0.5")
    assert not any(str(folder) in note for note in result.notes)
    notes, further = result.page_notes()
    assert [note for note in result.notes if "worked out for" in note or "read as" in note] == result.notes[-2:]
    assert notes[0].startswith("No manifest stands beside these scores")
    assert [*notes, *further][-1] == result.notes[-1]


def test_markdown_has_the_order_of_the_page(written):
    result, folder = written[()]
    page, text = (folder / "report.html").read_text(), (folder / "table.md").read_text()
    titles = {grid.name: grid.title for grid in result.grids()}
    shown = [titles[name] for name in re.findall(r'id="table-([^"]+)"', page) if name in titles]
    assert [title for title in re.findall(r"^## (.*)$", text, re.MULTILINE) if title in shown] == shown
    parts = ("Verdict", "Scores by task type", "Notes", "The verdict in full", "Pairs of designs")
    assert [text.index(f"## {part}\n") for part in parts] == sorted(text.index(f"## {part}\n") for part in parts)


def test_no_table_of_scores_prints_a_difference_past_the_unit(written):
    result, _ = written[WORDS]
    for answer in result.answers:
        cells = [cell for grid in answer.grids for row in grid.rows for cell in row]
        words = [*(cell.text for cell in cells), *(line for cell in cells for line in cell.below), *answer.notes]
        past = [text for text in [*words, *answer.about.values()] if re.search(r"[+-]\.\d{4}", text)]
        assert not past or not answer.of_scores, f"{answer.name}: print scores by settings.numbers, not {past[:3]}"


def test_costs_are_of_the_best(root, analyse_words):
    result = analyse_words(f"scores={root}", "rows_shown=2")
    (costs,) = [grid for grid in result.grids() if grid.name == "costs"]
    assert [row[0].text for row in costs.rows] == ["mean-bi", "multilayer-bi"]
    assert costs.rest == "The first 2 of 3 designs, those of the highest means; by_type.csv has all."
