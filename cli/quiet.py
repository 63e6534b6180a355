"""Libraries that talk: their notices that no user can act on, silenced."""

import logging
import os
import warnings


def quieten() -> None:
    """Silence notices, warnings and inner progress bars of the libraries for the rest of the process."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
