"""The tables of an analysis: one file each, with `section(compared)`; sections.py has their order."""
