"""Reasons why designs differ: their layers, vectors, attention and routers. `python -m representation run=...`."""
