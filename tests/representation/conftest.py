"""Runs and texts for the questions: the small decoder of the tests, untrained, and the smoke benchmark."""

import pytest

from cli.compose import composed, plain
from representation.encoders_studied import read_encoders
from representation.texts import read_texts

TASKS = ["DocsNetworkxRetrieval", "DocsNetworkxClassification", "DocsNetworkxPairClassification"]


@pytest.fixture(scope="session")
def representation_words(small_model, tmp_path_factory):
    """Words of a command that reads 12 texts a type with the small untrained model."""
    place = tmp_path_factory.mktemp("representation")
    return [
        f"model.path={small_model}",
        *("attn=bi", "pooler=multilayer", "precision=fp32", "accelerator=cpu", "text_length=48", "progress=false"),
        *("benchmark=docstrings_smoke", f"tasks=[{','.join(TASKS)}]", "texts=12"),
        f"out={place / 'out'}",
        f"results={place / 'scores'}",
    ]


@pytest.fixture(scope="session")
def settings(representation_words):
    """The composed configuration of these words."""
    return plain(composed("representation", representation_words))


@pytest.fixture(scope="session")
def two_encoders(settings):
    """The small model with causal and with bidirectional attention."""
    causal = {**settings, "attn": {**settings["attn"], "name": "causal"}}
    return [*read_encoders(causal), *read_encoders(settings)]


@pytest.fixture(scope="session")
def texts(settings):
    """What is read."""
    return read_texts(settings)
