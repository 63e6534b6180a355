"""Other libraries' chatter, off: what remains on the screen is ours, errors and progress."""

import logging
import os
import warnings


def quieten() -> None:
    """Silence the notices of Lightning, transformers, mteb and datasets that no user can act on."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    for name in ("pytorch_lightning", "lightning", "lightning_fabric", "transformers", "mteb", "datasets", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning|lightning_fabric|transformers|torch|mteb|datasets")
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
