"""Two heads asked again of seeds that did not choose them: the page has what the program prints."""

import re

import pandas as pd
import pytest

from tests.analysis.pages.markdown import DOCS, TABLES, section, table_rows
from tests.started import start

SCORES = [TABLES / name for name in ("ten_seeds.csv.gz", "replication.csv.gz")]


def cells(text, *names):
    """Cells of the rows of Markdown tables whose first cell begins with one of `names`."""
    return [row for row in table_rows(text) if row[0].startswith(names)]


@pytest.mark.slow
def test_the_claims_are_judged_as_the_page_says(tmp_path):
    words = [f"scores=[{','.join(map(str, SCORES))}]", f"claims={DOCS / 'claims' / 'replication.yaml'}"]
    done = start("-m", "analysis", *words, "seeds=[3,4,5,6,7,8,9]", f"out={tmp_path}")
    assert done.returncode == 0, done.stderr
    judged = section(TABLES / "claims.md", "Judged: two heads on seven other seeds")
    names = ("NV-Embed's latents beat", "a bidirectional head over", "that head beats")
    assert len(cells(judged, *names)) == 4
    assert cells(done.stdout, *names) == cells(judged, *names)
    table = pd.read_csv(tmp_path / "claims.csv").sort_values(["first", "second"]).to_dict("records")
    shown = cells((DOCS / "study.md").read_text(), "NV-Embed's latents - ", "all tokens of all layers, bi - ")
    assert len(shown) == len(table) == 4
    whole = pd.concat(map(pd.read_csv, SCORES)).groupby("model")["score"].mean()
    for row, line in zip(table, shown, strict=True):
        assert float(line[1]) == pytest.approx(row["difference"], abs=5.1e-5)
        assert float(line[2]) == pytest.approx(row["hodges_lehmann"], abs=5.1e-5)
        for said, p in zip(line[3].split("; "), (row["p_adjusted"], row["p_adjusted_seeds"]), strict=True):
            limit = float(re.search(r"\.\d+", said)[0])
            assert p < limit if said.startswith("<") else p == pytest.approx(limit, rel=0.06)
        assert line[4] == row["verdict"] == "told"
        assert float(line[5]) == pytest.approx(whole[row["second"]] - whole[row["first"]], abs=5.1e-5)


def test_the_seeds_are_ten_of_each_and_the_tasks_those_of_the_study():
    study, more = map(pd.read_csv, SCORES)
    assert set(more["task"]) == set(study["task"])
    assert more.groupby("model")["seed"].unique().map(sorted).tolist() == [list(range(10))] * 2
    assert len(more) == 2 * 10 * 56
