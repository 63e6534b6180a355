"""Libraries that talk: their notices that no user can act on, silenced for the process or for a block."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LIGHTNING = ("pytorch_lightning", "lightning", "lightning_fabric")
TALKERS = ("mteb", "datasets", "huggingface_hub", "transformers", "sentence_transformers", "httpx", "httpx2")


def quieten() -> None:
    """Silence the notices of Lightning, transformers, mteb and datasets for the rest of the process."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    for name in (*LIGHTNING, "transformers", "mteb", "datasets", "httpx", "httpx2"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning|lightning_fabric|transformers|torch|mteb|datasets")
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep log lines below ERROR, warnings and inner progress bars of the libraries off the screen, for the block."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from datasets.utils import disable_progress_bars, enable_progress_bars
    from transformers.utils import logging as transformers_logging

    levels = {name: logging.getLogger(name).level for name in TALKERS}
    for name in TALKERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    disable_progress_bars()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        enable_progress_bars()
        transformers_logging.enable_progress_bar()
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
