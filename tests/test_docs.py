"""README and docs/: every link resolves, the index has each page once, and the program takes their commands."""

import re
import shlex
from pathlib import Path

import pytest

from analysis.cli import read_arguments
from cli import compose
from cli.compose import CONF, check_overrides, composed, plain
from cli.quoting import as_typed, evaluate_words, train_words
from studies.jobs import split_words, study_jobs
from training.mine.__main__ import QUOTED
from training.specialise.__main__ import specialise_words

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
PAGES = sorted(page for page in DOCS.rglob("*.md") if not page.parent.name.endswith("-analysis"))  # written by us
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"^    python ((?:train|evaluate|study)\.py|-m (?:representation|analysis|training\.(?:mine|specialise))) (.*)$",
    re.MULTILINE,
)
SCORE = re.compile(r"(?<![\d.])\.\d{4}\b")
TARGET = re.compile(r"^    make (\w+)|`make (\w+)", re.MULTILINE)
OTHER_TREES = {DOCS / "log.md", *DOCS.glob("extend/*.md")}  # the words of the day, and of what a page adds

OURS = "analysis|benchmarks|cli|conf|corpora|encoders|evaluation|poolers|records|representation|studies|training"


def named(path):
    return str(path.relative_to(ROOT))


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=named)
def test_every_link_resolves(page):
    for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), f"{target} leads nowhere"
        assert not anchor or anchor in anchors(place), f"{target}: there is no such heading"


def test_the_index_has_one_line_per_page():
    listed = re.findall(r"^\| \[[^\]]+\]\(([^)]+)\) \| \S", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in PAGES if page != INDEX)


def test_every_figure_is_shown():
    text = "".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *PAGES])
    for figure in (DOCS / "figures").glob("*.png"):
        assert f"figures/{figure.name}" in text


@pytest.mark.parametrize("folder", ["conf", "analysis", "benchmarks", "encoders", "evaluation", "poolers", "training"])
def test_pages_that_sources_name_exist(folder):
    for file in (ROOT / folder).rglob("*"):
        if file.suffix in (".py", ".yaml"):
            for page in re.findall(r"docs/[\w/-]+\.md", file.read_text(encoding="utf-8")):
                assert (ROOT / page).is_file(), f"{named(file)} names {page}"


@pytest.mark.parametrize("page", [page for page in PAGES if page not in OTHER_TREES], ids=named)
def test_sources_that_pages_name_exist(page):
    """Paths of our packages, names of test files, and modules that are run."""
    text = page.read_text(encoding="utf-8")
    for path in re.findall(rf"(?<![\w/])(?:{OURS})/[\w/]+\.(?:py|yaml|csv)\b", text):
        assert "/test_" in path or (ROOT / path).exists(), path
    for name in re.findall(r"\btest_\w+\.py\b", text):
        assert any((ROOT / "tests").rglob(name)), name
    for module in re.findall(r"python -m (\w+(?:\.\w+)*)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "findings.md", DOCS / "study.md"], ids=named)
def test_every_score_stands_in_a_table(page):
    """A score or difference that prose states is in a table of its page, or of a page that it links."""
    text = page.read_text(encoding="utf-8")
    linked = {(page.parent / path).resolve() for path in re.findall(r"\]\(([^)#]+\.md)", text)}
    rows, prose = [], []
    for line in "\n".join([text, *(other.read_text(encoding="utf-8") for other in linked)]).splitlines():
        rows += SCORE.findall(line) if line.startswith("|") else []
    for line in text.splitlines():
        prose += [] if line.startswith("|") else SCORE.findall(line)
    assert prose
    assert not set(prose) - set(rows)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_the_readme_shows_a_whole_pooler():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code, _), (words,) = (re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S) for kind in ("python", "yaml"))
    name = re.search(r"^name: (\w+)$", words, re.M).group(1)
    assert code == (ROOT / "poolers" / f"{name}.py").read_text(encoding="utf-8")
    assert words == (CONF / "pooler" / f"{name}.yaml").read_text(encoding="utf-8")


def commands():
    """The program and words of each command in README and docs that can be given as it stands, once."""
    seen = set()
    for page in [ROOT / "README.md", *PAGES]:
        for program, line in COMMAND.findall(page.read_text(encoding="utf-8") if page not in OTHER_TREES else ""):
            words = shlex.split(line.partition("  ")[0].rstrip("\\"))
            if (program, *words) not in seen and not any("<" in word or word.endswith("...") for word in words):
                seen.add((program, *words))
                yield pytest.param(program.split()[-1].removesuffix(".py"), words, id=f"{page.stem}: {' '.join(words)}")


ABSENT = ("scores=", "machines=", "representation=", "benchmark=", "claims=")  # places, and what mteb alone knows
READ = {
    "train": lambda words: check_overrides("train", train_words(words)),
    "evaluate": lambda words: composed("evaluate", evaluate_words(words)),
    "representation": lambda words: composed("representation", evaluate_words(words)),
    "training.mine": lambda words: composed("mine", as_typed(words, QUOTED)),
    "training.specialise": lambda words: composed("specialise", specialise_words(words)),
    "study": lambda words: study_jobs(plain(composed("study", split_words(words).study)), split_words(words)),
    "analysis": lambda words: read_arguments([f"scores={ROOT}", *(w for w in words if not w.startswith(ABSENT))]),
}


@pytest.mark.parametrize(("program", "words"), commands())
def test_the_program_takes_every_command(program, words, monkeypatch):
    monkeypatch.setattr(compose, "SWEEP_PROBES", 2)  # of a sweep's values
    READ[program](words)


def test_every_make_target_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in [ROOT / "README.md", *PAGES]:
        for found in TARGET.findall(page.read_text(encoding="utf-8")):
            assert "".join(found) in targets, f"{named(page)}: make {''.join(found)}"
