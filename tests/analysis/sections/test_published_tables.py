"""Published numbers beside ours: what the tables hold, and what our tasks and seeds could have found."""

import numpy as np
import pandas as pd
import pytest

from analysis.scores.tasks import known_types
from analysis.statistics.power import components, detectable, power
from analysis.statistics.seeds import spreads
from analysis.tables import published
from cli.errors import UserError
from tests.analysis.sections.test_by_type import noise, of_kinds
from tests.analysis.sections.test_claims import FIVE
from tests.analysis.three_seeds import by_seed


def beside(*tables, scores=None):
    scores = by_seed(noise(3, 5, 48), 3) if scores is None else scores
    answer = published.section(of_kinds(scores, FIVE, kinds=("STS", "Clustering"), published=tables))
    return answer.frames["published"], answer, scores


def test_the_tables_hold_the_published_numbers():
    """Sums over each table, written down from its source."""
    gains = published.published_rows(("pooling_attention",))
    assert gains.groupby("type")["difference"].sum().round(4).to_dict() == {"Retrieval": 0.0676, "STS": 0.0508}
    assert gains[gains["significant"] == "yes"]["difference"].tolist() == [0.0129, 0.0118, 0.0095, 0.0166, 0.0226]
    moee = published.published_rows(("moee",))
    whole = moee[moee["type"] == ""]
    assert whole["second_score"].sum() == pytest.approx(7.9864)
    assert whole.drop_duplicates(["base", "setting"])["first_score"].sum() == pytest.approx(2.5449)
    np.testing.assert_allclose(moee["difference"], moee["second_score"] - moee["first_score"], atol=1e-9)


def test_published_scores_of_moee_average_to_its_published_types():
    """Tables 8 to 12 of arXiv 2410.10814 against its tables 3 and 4; docs/moee.md names the one row that differs."""
    scores = pd.read_csv(published.TABLES / "scores" / "moee.csv").set_index("model") / 100
    kinds = {task: known_types()[task] for task in scores}
    by_type = scores.T.groupby(kinds).mean().T
    variants = {"moee_routing-causal": "RW", "moee_concat-causal": "concat", "moee-causal": "sum"}
    table, differ = published.published_rows(("moee",)), set()
    for row in table[table["type"] != ""].to_dict("records"):
        for side, name in (("second_score", variants[row["second"]]), ("first_score", "HS")):
            model = f"{row['base']}, {row['setting']}, {name}"
            if abs(by_type.loc[model, row["type"]] - row[side]) > 1.01e-4:
                differ.add((model, row["type"]))
    assert differ == {("DeepSeekMoE-16B, no prompt, HS", "Reranking")}
    assert len(scores) == 24
    assert len(kinds) == 19


def test_ours_stand_beside_with_the_power_for_the_published_size():
    table, answer, scores = beside("pooling_attention")
    of_sts = table[table["type"] == "STS"]
    means = scores.mean(axis=2)[:, :24]
    expected = {name: (row - means[0]).mean() for name, row in zip(FIVE, means, strict=True)}
    np.testing.assert_allclose(of_sts["ours"], [expected[name] for name in of_sts["second"]])
    (row,) = of_sts[of_sts["second"] == "multilayer-bi"].to_dict("records")
    of = components(spreads(scores[:, :24]), np.array([0]), np.array([FIVE.index("multilayer-bi")]))
    assert row["power"] == pytest.approx(power(of, row["difference"], 0.05, (3, 3))[0])
    assert row["detectable"] == pytest.approx(detectable(of, 0.05, (3, 3))[0])
    absent = table[table["type"] == "Retrieval"]
    assert absent["ours"].isna().all()
    assert (answer.tables[0].frame["Tasks"] == "Retrieval: not ours").sum() == len(absent) == 4


def test_a_table_that_is_not_there_is_named():
    with pytest.raises(UserError, match="Nearest: moee"):
        beside("moe")
