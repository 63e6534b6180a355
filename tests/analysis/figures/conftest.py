"""Results with figures, of scores that a test names."""

import pytest


@pytest.fixture(scope="module")
def wide(tmp_path_factory, analyse_words):
    """Return a function: scores [designs, tasks] and names -> result; tasks are mteb's, of two types."""
    folder = tmp_path_factory.mktemp("wide")
    tasks = ["STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R", "SciFact", "ArguAna", "FiQA2018"]

    def make(values, names, *words):
        own = tasks[: values.shape[1]]
        rows = [",".join([f'"{n}"', *map(repr, row)]) for n, row in zip(names, values.tolist(), strict=True)]
        (folder / "wide.csv").write_text("\n".join([f"model,{','.join(own)}", *rows]) + "\n")
        return analyse_words(f"scores={folder / 'wide.csv'}", *words)

    return make
