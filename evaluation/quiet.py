"""mteb, datasets and the hub client say little while a progress bar runs."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

TALKERS = ("mteb", "datasets", "huggingface_hub", "transformers", "sentence_transformers", "httpx")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep log lines below ERROR, warnings and inner progress bars of the libraries off the screen, and put back
    what was there."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from datasets.utils import disable_progress_bars, enable_progress_bars
    from datasets.utils import logging as _  # noqa: F401  (datasets sets up its logger on import)

    levels = {name: logging.getLogger(name).level for name in TALKERS}
    for name in TALKERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        enable_progress_bars()
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
