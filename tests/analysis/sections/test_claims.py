"""Claims of a list: p against scipy, verdicts that were planted, what is corrected together."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from scipy.stats import ttest_1samp, wilcoxon

from analysis.render import texts
from analysis.statistics.correction import holm
from analysis.tables import claims
from analysis.tables.claims import Claim
from cli.errors import UserError
from tests.analysis.sections.test_by_type import noise, of_kinds
from tests.analysis.three_seeds import by_seed

FIVE = ("eos-causal", "lastlayer-causal", "multilayer-causal", "lastlayer-bi", "multilayer-bi")
M1, M2, M3, M4, M5 = FIVE
LIST = [
    Claim("a", M2, M1, type="STS", published=0.01),
    Claim("b", M1, M3, type="STS", published=-0.01),
    Claim("c", M5, M4, type="STS"),
    Claim("d", M5, M1, published=0.02),
]


def seeded(seed=0, seeds=3):
    """Scores [5 designs, 24 tasks, seeds] whose designs vary with the seed."""
    rng = np.random.default_rng(seed)
    return noise(seed, 5)[..., None] + rng.normal(0, 0.004, (5, 1, seeds)) + rng.normal(0, 0.004, (5, 24, seeds))


def table(scores, of, **changes):
    """The table of these claims, and the answer. changes: as `of_kinds` takes them."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "claims.yaml")
        path.write_text(json.dumps([claim._asdict() for claim in of]))  # JSON is YAML
        found = claims.section(of_kinds(scores, FIVE, claims=path, **changes))
    return found.frames["claims"], found


@pytest.mark.parametrize("control", ["", M1, M4])
def test_p_and_interval_are_those_of_the_pairs_and_the_family_is_what_is_named(control):
    scores = seeded()
    found, _ = table(scores, LIST, control=control)
    pairs = of_kinds(scores, FIVE).pairs
    place = {name: k for k, name in enumerate(FIVE)}
    for row in found.to_dict("records"):
        differences = (scores[place[row["second"]]] - scores[place[row["first"]]])[: int(row["n_tasks"])]
        both = pairs["first"].isin([row["first"], row["second"]]) & pairs["second"].isin([row["first"], row["second"]])
        pair = pairs[both & (pairs["type"] == row["type"])].iloc[0]
        assert row["mean_difference"] == pytest.approx(differences.mean())
        assert row["p_wilcoxon"] == pytest.approx(wilcoxon(differences.mean(axis=1), method="exact").pvalue)
        side = 1 if pair["first"] == row["first"] else -1
        assert row["p"] == pytest.approx(pair["p"])
        assert sorted((row["low"], row["high"])) == pytest.approx(sorted((side * pair["low"], side * pair["high"])))
    for name in ("p", "p_wilcoxon", "p_equivalent"):
        np.testing.assert_allclose(found[f"{name}_holm"], holm(found[name].to_numpy()))


def test_what_is_found_in_80_percent_is_of_the_family_that_is_named():
    alone = of_kinds(seeded(), FIVE, control=M1).pairs
    alone = alone[alone["type"] == alone["type"].iloc[-1]].set_index("second")["detectable"]
    found, _ = table(seeded(), [Claim("", design, M1) for design in (*FIVE[1:], "latent-bi")])
    assert found["detectable"][:4].tolist() == pytest.approx(alone[[*FIVE[1:]]].tolist())


def planted():
    """Means of runs: M2 is ahead of M1, M3 behind it, M4 hardly differs from it, and M5 does on some tasks."""
    scores = np.broadcast_to(noise(3, 1)[0], (5, 24)).copy() + np.random.default_rng(4).normal(0, 0.001, (5, 24))
    scores[4] += np.where(np.arange(24) % 2, 0.03, -0.03)
    return scores + np.array([0, 0.02, -0.02, 0, 0])[:, None]


NONE = "no significant difference"
VERDICTS = [
    (Claim("", M2, M1, published=0.01), "significant", True, "same"),
    (Claim("", M2, M1, published=-0.01), "significant", True, "opposite"),
    (Claim("", M3, M1, published=0.01), "significant in the opposite direction", False, "opposite"),
    (Claim("", M1, M3), "significant", True, ""),
    (Claim("", M4, M1, published=0.01), "equivalent", False, NONE),
    (Claim("", M4, M1, "level"), "equivalent", True, ""),
    (Claim("", M2, M1, "level", published=0.01), "significantly different", False, "same"),
    (Claim("", M5, M1, "level"), NONE, False, ""),
    (Claim("", M5, M1), NONE, False, ""),
    (Claim("", "latent-bi", M1, published=0.01), "no runs", False, ""),
    (Claim("", "mean-bi merge=mntp", "mean-bi"), "no runs", False, ""),
    (Claim("", M2, M1, type="Summarization"), "no runs", False, ""),
]


def test_verdicts_that_were_planted():
    found, answer = table(by_seed(planted()), [claim for claim, *_ in VERDICTS])
    assert list(zip(found["verdict"], found["holds"], found["sign"], strict=True)) == [tuple(v) for _, *v in VERDICTS]
    (first,) = answer.notes
    assert first.startswith("Claims that hold: 4 of 12 (3 x significant, 1 x significant in the opposite direction,")
    (shown,) = answer.tables
    assert [(k, "Verdict") in shown.emphasis for k in range(12)] == found["holds"].tolist()
    assert shown.frame["Difference"][9] == "-"


@pytest.mark.parametrize(("seeds", "words"), [(1, "no claim: 1 of 3 seeds"), (2, "no claim: 2 of 3 seeds")])
def test_fewer_than_three_seeds_make_no_claim(seeds, words):
    found, answer = table(by_seed(planted(), seeds), [VERDICTS[0][0], VERDICTS[5][0]])
    assert found["verdict"].tolist() == [words] * 2
    assert not found["holds"].any()
    assert not found["sign"].any(), "without a test the sign of no difference is known"
    differences = planted()[1] - planted()[0]
    inside = ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (found["low"][0], found["high"][0]) == pytest.approx(tuple(inside))
    assert texts(answer.tables[0])["p over tasks and seeds"].tolist() == ["-", "-"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claim: a", "cannot be read"),
        ("- {claim: a, ahead: b, behind: c, publish: 1}", "publish"),
        ("- {claim: a, ahead: b, behind: c, kind: levle}", "kind: levle is not known. Nearest: level"),
        ("- {claim: a, ahead: eos-casual, behind: eos-bi}", "'eos-casual' and 'eos-bi'. Nearest: eos-causal"),
        ("[]", "there is no claim"),
        ("- {claim: a, ahead: 5, behind: c}", "5 must be a text"),
        ("- {claim: a, ahead: b, behind: b}", "b is ahead and behind"),
        ("- {claim: a, ahead: b, behind: c, published: 1.66}", "published: 1.66 must be a number from -1 to 1"),
        ("- {claim: a, ahead: b, behind: c, published: 0}", "published: 0 must be a number"),
        ("- {claim: a, ahead: multilayer-bi, behind: eos-causal, type: sts}", "names no type .* Nearest: STS"),
    ],
)
def test_wrong_lists(tmp_path, text, message):
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        claims.section(of_kinds(by_seed(planted()), FIVE, claims=path))
