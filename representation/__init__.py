"""Why designs differ: what their layers, vectors and attention hold. `python -m representation run=...`."""
