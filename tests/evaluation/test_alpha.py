"""alpha of MoEE's sum is chosen on development data: the curve, its best value, and what is refused."""

import pytest

from cli.errors import UserError
from evaluation.alpha import curve, main


def test_the_best_has_the_highest_mean_and_at_a_tie_is_the_smaller():
    rows = [
        (0.0, {"A": 0.5, "B": 0.3}),
        (0.5, {"A": 0.4, "B": 0.6}),
        (1.0, {"A": 0.6, "B": 0.4}),
        (2.0, {"A": 0.1, "B": 0}),
    ]
    lines = curve(rows).splitlines()
    assert lines[-1] == "Best on docs_dev: pooler.alpha=0.5"
    assert [line.split()[0] for line in lines[1:5]] == ["0", "0.5", "1", "2"]
    assert lines[2].split()[1:] == ["0.4000", "0.6000", "0.5000"]


@pytest.mark.parametrize("word", ["benchmark=docs", "tasks_dir=here", "tasks=[SciFact]"])
def test_never_on_the_test_tasks(word):
    with pytest.raises(UserError, match="chosen on benchmark=docs_dev"):
        main([word])


@pytest.mark.parametrize("alphas", ["", "-1", "half"])
def test_alphas_are_numbers(alphas):
    with pytest.raises(UserError, match="must be numbers"):
        main([f"alphas={alphas}"])


@pytest.mark.slow
def test_the_whole_command(small_moe, tmp_path, capsys):
    """On the smallest development tasks: two values, two rows; the same from one forward pass as each by itself."""
    small = ["documents=40", "queries=10", "classes=2", "train_per_class=8", "experiments=1", "bootstraps=1"]
    words = [f"benchmark.{s}" for s in small] + [f"model.path={small_moe}", f"runs_dir={tmp_path}", "precision=fp32"]
    main(["alphas=0,1", "benchmark=docs_dev", *words])
    printed = capsys.readouterr().out
    assert printed.count("encoders x 7 tasks = 14 scores") == 1
    main(["alphas=0,1", "benchmark=docs_dev", *words, "pooler.hidden_layers=last", f"cache_dir={tmp_path / 'cache'}"])
    assert capsys.readouterr().out.splitlines()[-5:] == printed.splitlines()[-5:]
    assert "Best on docs_dev: pooler.alpha=" in printed
    table = [line.split() for line in printed.splitlines()[-5:-2]]
    assert table[0][0] == "alpha"
    assert [row[0] for row in table[1:]] == ["0", "1"]
    assert table[1][1:] != table[2][1:]
