"""Libraries that talk: their notices that no user can act on, silenced."""

import logging
import os
import warnings

TALKERS = (
    *("pytorch_lightning", "lightning", "lightning_fabric", "transformers", "sentence_transformers", "mteb"),
    *("datasets", "huggingface_hub", "httpx", "httpx2"),
)


def quieten() -> None:
    """Silence notices, warnings and inner progress bars of the libraries for the rest of the process."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    for name in TALKERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    modules = "pytorch_lightning|lightning_fabric|transformers|torch|mteb|datasets|sklearn|numpy|scipy|huggingface_hub"
    warnings.filterwarnings("ignore", module=modules)
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
