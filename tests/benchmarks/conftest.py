"""What the tests of the benchmarks share: triples of many lengths, and the library that they measure against."""

import pytest

from corpora.triples import Triple
from tests.triples import WORDS


@pytest.fixture(scope="session", autouse=True)
def _quiet():
    from cli.quiet import quieten

    quieten()


@pytest.fixture(scope="session")
def batch() -> list[Triple]:
    """Seven triples, texts of one to fifty words; some are longer than 48 tokens."""
    lengths = [1, 3, 50, 2, 9, 20, 5]
    return [
        Triple(
            f"{WORDS[i]} of {WORDS[-i - 1]}",
            " ".join(WORDS[(i + k) % 10] for k in range(n)) + f" {i}",
            (" ".join(WORDS[(3 * i + k) % 10] for k in range(60 - n)) + f" not {i}",),
        )
        for i, n in enumerate(lengths)
    ]
