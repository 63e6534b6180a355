"""The tasks of a benchmark: of mteb, of docstrings, of folders."""
