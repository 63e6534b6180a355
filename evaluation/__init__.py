"""Checkpoint -> mteb scores: the only package that knows mteb's interface.

Way of the data: what to score (`candidates`) x which tasks (`benchmarks`) -> `scoring` -> mteb's own result layout.
mteb, torch and datasets are imported inside functions, so that help and errors come at once.
"""
