"""Result -> one self-contained HTML page."""
