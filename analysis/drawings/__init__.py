"""Figures and their style. matplotlib is imported late."""
