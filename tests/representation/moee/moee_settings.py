"""Settings of a question on the small mixture of experts of the tests, untrained, with the smoke benchmark."""

from cli.compose import composed, plain
from representation.encoders_studied import read_encoders
from representation.texts import read_texts

TASKS = ["DocsNetworkxClustering", "DocsNetworkxPairClassification"]


def asked(small_moe, folder, *words):
    """Return (encoders, texts, settings) as the command hands them to a question."""
    usual = [f"model.path={small_moe}", "precision=fp32", "accelerator=cpu", "max_length=32", "progress=false"]
    usual += ["benchmark=docstrings_smoke", f"tasks=[{','.join(TASKS)}]", "texts=24"]
    settings = plain(composed("representation", [*usual, f"out={folder / 'out'}", f"results={folder / 's'}", *words]))
    return read_encoders(settings), read_texts(settings), settings
