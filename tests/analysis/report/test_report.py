"""The page holds everything, needs nothing beside it, and nothing in a name can become markup."""

import base64
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import escape

from analysis.grids.formats import typeset
from analysis.grids.html import number
from analysis.questions.question import questions
from analysis.report import methods as paragraph
from analysis.report.methods import REFERENCES, bibtex, methods
from analysis.report.page import report_files
from analysis.write import draw


def plain(sentence):
    """Without markup: (Holm, 1979)."""
    return re.sub(r"<[^>]*>", "", str(paragraph.html(sentence))).replace("&#39;", "'")


NASTY = '<script>alert("x")</script>&_%'


class Reader(HTMLParser):
    """Collects tags with their attributes, the text, and whether tags are closed in order."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text, self.rows = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def ours(new_study, spread_scores, analyse_words):
    study = new_study()
    for k, design in enumerate(("eos-causal", "lastlayer-bi", "mean-bi")):
        for trained in (True, False):
            scores = {
                t: s + 0.001 * ((7 * k + i) % 5) for i, (t, s) in enumerate(spread_scores(0.3 + 0.05 * k).items())
            }
            study.run(design, scores, trained=trained)
    return analyse_words(f"scores={study.root}")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory, analyse_words):
    path = tmp_path_factory.mktemp("foreign") / "wide.csv"
    names = ["plain", NASTY.replace('"', '""'), "third"]
    rows = [f'"{name}",{",".join(str(0.4 + 0.01 * k * (j + 1)) for k in range(8))}' for j, name in enumerate(names)]
    tasks = "SciFact,ArguAna,FiQA2018,NFCorpus,STS12,STS13,STS14,STS15"
    path.write_text("\n".join([f"model,{tasks}", *rows]) + "\n")
    return analyse_words(f"scores={path}")


def test_the_page_is_whole_and_accessible(ours):
    drawings = draw(ours)
    page = report_files(ours, drawings)["report.html"]
    reader = read(page)
    tags = [tag for tag, _ in reader.tags]
    assert dict(reader.tags)["html"]["lang"] == "en"
    assert tags.count("caption") == tags.count("table") >= 5
    images = [attributes for tag, attributes in reader.tags if tag == "img"]
    assert len(images) == len(drawings)
    assert all(image["alt"] and image["src"].startswith("data:image/svg+xml;base64,") for image in images)
    assert base64.b64decode(images[0]["src"].partition(",")[2]).startswith(b"<?xml")
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    links = [attributes["href"] for tag, attributes in reader.tags if tag == "a"]
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    assert not [a for _, a in reader.tags if a.get("src", "data:").partition(":")[0] != "data"]
    assert not re.search(r"@import|url\(|<link", page)
    text = " ".join(reader.text)
    folded = page.index('<details class="fold"')
    assert page.index(ours.summary[:40]) < page.index('id="figure-forest"') < page.index('id="table-by-type"') < folded
    assert page.index(ours.verdict[:40]) > folded
    assert page[:folded].count("<table") == page[:folded].count("<figure") == 1
    assert page[:folded].count("<li>") == len(ours.page_notes()[0]) <= 7
    for note in ours.notes:
        assert typeset(note) in text
    assert "Controlled: these 3 cells differ only in pooler, attn" in text


def test_a_reviewer_meets_the_sections_in_the_order_of_the_questions(ours):
    page = report_files(ours, draw(ours))["report.html"]
    sections = re.findall(r'<details class="fold" id="([^"]*)"', page)
    asked = [
        "in-full",
        "section-pairs",
        "section-equivalence",
        "section-power",
        "section-before_after",
        "section-costs",
    ]
    asked += ["section-designs", "audit", "methods", "references"]
    assert [name for name in sections if name in asked] == asked
    assert 'id="figure-forest_by_type"' in page.partition('id="section-pairs"')[2].partition("</details>")[0]
    for answer in ours.answers:
        own = page.partition(f'id="section-{answer.name}"')[2].partition("</details>")[0]
        assert all(str(escape(typeset(note))) in own for note in answer.notes if answer.grids)


def test_a_cell_knows_its_head(ours):
    """A row becomes a card where its table is too wide: each cell then says what it is."""
    page = report_files(ours, [])["report.html"]
    table = page.partition('id="table-pairs"')[2].partition("</table>")[0]
    labels = re.findall(r'<t[dh][^>]* data-label="([^"]*)"', table)
    (grid,) = [grid for grid in ours.grids() if grid.name == "pairs"]
    heads = [name.partition(" (")[0] for name in grid.header]
    assert labels == heads * len(grid.rows)
    scores = page.partition('id="table-by-type"')[2].partition("</table>")[0]
    labels = re.findall(r'<t[dh][^>]* data-label="([^"]*)"', scores)[:5]
    assert [label.replace("\u00a0", " ") for label in labels] == [
        "Design",
        "Retrieval",
        "STS",
        "Mean (16 tasks)",  # "Mean" alone would be two columns of one name
        "Mean (2 types)",
    ]


def test_names_are_escaped_everywhere(foreign):
    files = report_files(foreign, draw(foreign))
    reader = read(files["report.html"])
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert NASTY in " ".join(reader.text)
    assert "No manifests: foreign scores" in " ".join(reader.text)


def test_repeated_names_are_filled_in_so_that_rows_can_be_sorted(ours):
    page = report_files(ours, [])["report.html"]
    body = page.partition('id="table-before-after"')[2].partition("</table>")[0]
    names = re.findall(r'<th scope="row" data-v="([^"]*)"', body)
    assert names == [d for d in ours.material.designs for _ in range(5)]


@pytest.mark.parametrize(
    ("text", "value"),
    [("+.0129", "0.0129"), ("-.0040", "-0.004"), ("1.52 M", "1520000.0"), ("467 K", "467000.0"), ("3,346", "3346.0"),
     ("-", ""), ("", ""), ("inf", "Infinity"), ("<.0001", "0.0001"), (".4205", "0.4205"), ("12 to 15", "12.0"),
     ("worse", "")],
)  # fmt: skip
def test_what_a_click_sorts_by(text, value):
    assert number(text) == value


def test_methods_say_what_was_done_in_this_run(ours, foreign, analyse_words):
    text = " ".join(map(plain, methods(ours)))
    for words in (
        "3 designs on 16 tasks of 2 types (Retrieval: 8, STS: 8)",
        "(Tang and Yang, 2024)",
        "two-sided Wilcoxon signed-rank test (Wilcoxon, 1945)",
        "Differences of zero were dropped before ranking",
        "Holm's step-down procedure (Holm, 1979) over the 3 pairs of one task type; the level of significance is .05",
        "Every design has one seed: 0.",
        "The manifests of all runs agree",
    ):
        assert words in text
    assert "Pratt" not in text
    scores = str(ours.material.settings.scores[0])
    other = " ".join(map(plain, methods(analyse_words(f"scores={scores}", "zeros=pratt", "correction=none"))))
    assert "(Pratt, 1959)" in other
    assert "No correction for the 9 tests was made" in other
    theirs = " ".join(map(plain, methods(foreign)))
    assert "of MTEB (Muennighoff et al., 2023)" in theirs
    assert "manifest" not in theirs
    assert "Tang" not in theirs


def test_no_package_is_named_that_did_not_run(ours):
    """Those named are imported by the sources, and matplotlib only where figures were drawn."""
    (line,) = [line for line in methods(ours) if line.startswith("Computed with Python")]
    named = set(re.findall(r"(\w+) [\d.]+", line)) - {"Python"}
    texts = [path.read_text() for path in (Path(__file__).parents[3] / "analysis").rglob("*.py")]
    imported = {name for text in texts for name in re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)}
    assert named <= imported
    assert "matplotlib" not in named
    material = replace(ours.material, settings=replace(ours.material.settings, figures=True))
    drawn = replace(ours, material=material)
    assert "matplotlib" in next(line for line in methods(drawn) if line.startswith("Computed"))


@pytest.mark.parametrize("key", REFERENCES)
def test_every_reference_has_a_line(key):
    reference = REFERENCES[key]
    assert re.fullmatch(rf"\S.* \({key[-4:]}\)\. .+[.?] .+\.", reference.full), reference.full
    assert reference.short.endswith(key[-4:])


def test_only_what_is_cited_is_in_the_bibliography(ours):
    files = report_files(ours, [])
    cited = set(re.findall(r"\\cite\{([^}]*)\}", files["methods.tex"]))
    keys = {key for group in cited for key in group.split(",")}
    assert keys == set(re.findall(r"@\w+\{(\w+),", files["references.bib"]))
    assert {"wilcoxon1945", "holm1979", "kerby2014"} <= keys


def test_every_section_sentence_cites_known_works():
    assert set(paragraph.keys_of(getattr(question, "METHODS", "") for question in questions())) <= set(REFERENCES)
    assert bibtex(REFERENCES).count("@") == len(REFERENCES)
    with pytest.raises(KeyError, match="nobody1900"):
        bibtex(["nobody1900"])


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_methods_and_bibliography_compile(ours, tmp_path):
    files = report_files(ours, []) | {"references.bib": bibtex(REFERENCES)}
    for name in ("methods.tex", "references.bib"):
        (tmp_path / name).write_text(files[name])
    body = r"\input{methods}\nocite{*}\bibliographystyle{plain}\bibliography{references}"
    (tmp_path / "main.tex").write_text(rf"\documentclass{{article}}\begin{{document}}{body}\end{{document}}")
    latex = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "main"]
    for words in (latex, ["bibtex", "main"], latex, latex):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert "undefined" not in (tmp_path / "main.log").read_text().lower().replace("undefined references", "")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on this machine")
def test_a_click_sorts_and_a_third_restores(ours, tmp_path):
    page = report_files(ours, [])["report.html"]
    click = """<script>
const table = document.querySelector("#table-by-type table");
const names = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join("|");
const button = table.tHead.rows[0].cells[table.tHead.rows[0].cells.length - 1].querySelector("button");
const seen = [names()];
for (let k = 0; k < 3; k++) { button.click(); seen.push(names()); }
document.title = seen.join(" / ");
</script></body>"""
    (tmp_path / "page.html").write_text(page.replace("</body>", click))
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]  # fmt: skip
    words = ["chromium", *words, "--dump-dom", f"file://{tmp_path / 'page.html'}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    before, down, up, again = re.search(r"<title>(.*?)</title>", done.stdout)[1].split(" / ")
    means = ours.material.means.iloc[:, -1].sort_values()
    assert before == again == "|".join(ours.material.designs)
    assert down == "|".join(means.index[::-1])
    assert up == "|".join(means.index)
