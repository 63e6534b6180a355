"""The split of the variance: against literal matrices, REML, a known model, and closed forms."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from analysis.statistics.variance import (
    AXES,
    ORDER,
    REST,
    components,
    mean_squares,
    seed_standard_error,
    task_standard_error,
)

SD = {"design": 0.03, "task": 0.2, "seed": 0.02, "design x task": 0.04, "design x seed": 0.02, "task x seed": 0.03}


def simulated(shape, sd, rest, rng):
    """[designs, tasks, seeds]: one normal effect a term."""
    values = rng.normal(0, rest, shape)
    for term, size in sd.items():
        axes = [AXES.index(name) for name in term.split(" x ")]
        values = values + rng.normal(0, size, [shape[k] if k in axes else 1 for k in range(3)])
    return values


def literal_components(values):
    """Solve E[y'Ay] = tr(AV) for the seven quadratic forms, with Kronecker matrices."""
    sizes = values.shape
    terms = [own for k in (1, 2, 3) for own in combinations(range(3), k)]

    def kron(parts):
        return np.kron(np.kron(parts[0], parts[1]), parts[2])

    def centred(n):
        return np.eye(n) - 1 / n

    forms = [kron([centred(n) if k in own else np.full((n, n), 1 / n) for k, n in enumerate(sizes)]) for own in terms]
    covariances = [kron([np.eye(n) if k in own else np.ones((n, n)) for k, n in enumerate(sizes)]) for own in terms]
    y = values.ravel()
    expected = np.array([[np.trace(form @ v) for v in covariances] for form in forms])
    found = np.linalg.solve(expected, [y @ form @ y for form in forms])
    return {" x ".join(AXES[k] for k in own): value for own, value in zip(terms, found, strict=True)}


def test_components_solve_the_literal_expectations():
    values = simulated((3, 5, 4), SD, 0.02, np.random.default_rng(0))
    theirs = literal_components(values)
    ours = components(values)
    assert list(ours) == list(ORDER)
    for term, part in ours.items():
        assert part.estimate == pytest.approx(theirs[term], rel=1e-9, abs=1e-15), term


def test_mean_squares_are_those_of_statsmodels():
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    values = simulated((3, 4, 3), SD, 0.02, np.random.default_rng(1))
    long = pd.DataFrame([(*place, y) for place, y in np.ndenumerate(values)], columns=["d", "t", "s", "y"])
    table = anova_lm(ols("y ~ C(d) * C(t) * C(s) - C(d):C(t):C(s)", long).fit())
    rows = {
        "design": "C(d)",
        "task": "C(t)",
        "seed": "C(s)",
        "design x task": "C(d):C(t)",
        "design x seed": "C(d):C(s)",
    }
    for term, name in (rows | {"task x seed": "C(t):C(s)", REST: "Residual"}).items():
        df, square = mean_squares(values)[term]
        assert (df, square) == (table.loc[name, "df"], pytest.approx(table.loc[name, "mean_sq"], rel=1e-9))


def test_components_are_those_of_reml_where_none_is_negative():
    """In a balanced table REML gives the same estimates if all are above zero; here by its own optimiser."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    values = 10 * simulated((4, 6, 4), SD, 0.03, np.random.default_rng(0))
    ours = components(values)
    assert min(part.estimate for part in ours.values()) > 0
    long = pd.DataFrame([(*place, y) for place, y in np.ndenumerate(values)], columns=[*AXES, "y"])
    formulas = {term: "0 + " + " : ".join(f"C({axis})" for axis in term.split(" x ")) for term in ORDER if term != REST}
    model = MixedLM.from_formula("y ~ 1", long, groups=np.ones(len(long)), vc_formula=formulas, re_formula="0")
    fit = model.fit(reml=True, method="lbfgs")
    theirs = dict(zip(model.exog_vc.names, fit.vcomp, strict=True)) | {REST: fit.scale}
    for term, part in ours.items():
        assert theirs[term] == pytest.approx(part.estimate, rel=2e-2), term


def test_a_known_model_is_recovered_on_average():
    rng = np.random.default_rng(2)
    true = {term: size**2 for term, size in (SD | {REST: 0.02}).items()}
    found = np.array(
        [[p.estimate for p in components(simulated((6, 12, 5), SD, 0.02, rng)).values()] for _ in range(400)]
    )
    error = found.std(axis=0) / 20
    for k, term in enumerate(ORDER):
        assert abs(found[:, k].mean() - true[term]) < 4 * error[k], term


def test_without_seed_effect_the_seeds_have_no_share():
    values = np.repeat(
        simulated((3, 8, 1), {"task": 0.2, "design x task": 0.02}, 0, np.random.default_rng(3)), 3, axis=2
    )
    found = components(values)
    for term in ("seed", "design x seed", "task x seed", REST):
        assert (found[term].estimate, found[term].share) == (0.0, 0.0)
    assert sum(part.share for part in found.values()) == pytest.approx(1)
    assert seed_standard_error(found, 8, 1) == 0
    # with no seeds in it, the difference of two designs has the error of a two-way table
    flat = values[:, :, 0] - values[:, :, 0].mean(axis=0) - values[:, :, 0].mean(axis=1)[:, None] + values.mean()
    assert task_standard_error(found, 8) == pytest.approx(np.sqrt(2 * (flat**2).sum() / (2 * 7) / 8))


def test_negative_estimates_are_kept_and_shown_as_zero():
    values = np.zeros((2, 2, 2))
    values[0, 0, 0] = values[0, 1, 1] = values[1, 0, 1] = values[1, 1, 0] = 1.0  # only the three-way term
    found = components(values)
    assert found[REST].estimate == pytest.approx(2.0)
    assert found["design"].estimate == pytest.approx(0.5)  # (0 - 0 - 0 + 2) / 4
    assert found["design x seed"].estimate == pytest.approx(-1.0)
    assert (found["design x seed"].variance, found["design x seed"].share) == (0.0, 0.0)


def test_the_seeds_standard_error_is_that_of_repeated_training():
    """Draw the runs again and again with the same designs and tasks: the spread of the difference is the formula."""
    rng = np.random.default_rng(4)
    shape, sd, rest = (2, 9, 3), {"seed": 0.5, "task x seed": 0.5, "design x seed": 0.02}, 0.03
    drawn = [simulated(shape, sd, rest, rng) for _ in range(4000)]
    spread = np.std([np.subtract(*values.mean(axis=(1, 2))) for values in drawn])
    true = np.sqrt(2 * (0.02**2 + 0.03**2 / 9) / 3)
    assert spread == pytest.approx(true, rel=0.05)
    estimated = np.mean(
        [[2 * (c["design x seed"].estimate + c[REST].estimate / 9) / 3] for c in map(components, drawn[:600])]
    )
    assert estimated == pytest.approx(true**2, rel=0.15)
