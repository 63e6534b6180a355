"""The tables of an analysis: one file each, with `section(material)`; sections.py has their order."""
