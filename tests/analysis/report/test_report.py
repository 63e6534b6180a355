"""The page holds everything, needs nothing beside it, and nothing in a name can become markup."""

import base64
import re
from html.parser import HTMLParser

import pytest

from analysis.formats import typeset
from analysis.report.page import report_page
from analysis.write import draw

NASTY = '<script>alert("x")</script>&_%'


class Reader(HTMLParser):
    """Collects tags with their attributes, the text, and whether tags are closed in order."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text = [], [], []

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
        scores = {t: s + 0.001 * ((7 * k + i) % 5) for i, (t, s) in enumerate(spread_scores(0.3 + 0.05 * k).items())}
        study.run(design, scores)
    return analyse_words(f"scores={study.root}")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory, analyse_words):
    path = tmp_path_factory.mktemp("foreign") / "wide.csv"
    names = ["plain", NASTY.replace('"', '""'), "third"]
    rows = [f'"{name}",{",".join(str(0.4 + 0.01 * k * (j + 1)) for k in range(8))}' for j, name in enumerate(names)]
    tasks = "SciFact,ArguAna,FiQA2018,NFCorpus,STS12,STS13,STS14,STS15"
    path.write_text("\n".join([f"model,{tasks}", *rows]) + "\n")
    return analyse_words(f"scores={path}")


def test_the_page_is_whole(ours):
    drawings = draw(ours)
    page = report_page(ours, drawings)
    reader = read(page)
    images = [attributes for tag, attributes in reader.tags if tag == "img"]
    assert len(images) == sum(map(len, drawings.values()))
    assert all(image["alt"] and image["src"].startswith("data:image/svg+xml;base64,") for image in images)
    assert base64.b64decode(images[0]["src"].partition(",")[2]).startswith(b"<?xml")
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert not [a for _, a in reader.tags if a.get("src", "data:").partition(":")[0] != "data"]
    assert not re.search(r"@import|url\(|<link", page)
    assert page.index(typeset(ours.verdict[:40])) < page.index('id="figure-forest"') < page.index('id="table-means"')
    text = " ".join(reader.text)
    for note in [*ours.notes, *(note for section in ours.sections for note in section.notes)]:
        assert typeset(note) in text
    assert "Controlled: these 3 cells differ only in pooler, attn" in text


def test_names_are_escaped_everywhere(foreign):
    reader = read(report_page(foreign, draw(foreign)))
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert NASTY in " ".join(reader.text)
    assert "No manifests: foreign scores" in " ".join(reader.text)
