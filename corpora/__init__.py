"""Sources of text: docstrings of installed packages, files of triples, hub data sets. Imports `cli`, `records`."""
