"""Sources of text: docstrings of installed packages, files of triples, hub data sets.

Used by `training` (pairs, raw text) and by `evaluation` (the docs benchmark); imports only `records`.
"""
