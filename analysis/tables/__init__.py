"""The tables of an analysis: one file each, with `section(comparison)`; sections.py has their order."""
