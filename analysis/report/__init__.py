"""Result -> one self-contained HTML page, a methods paragraph, and the references it cites."""
