"""Scores -> long table -> paired tests -> tables. Imports no torch and no mteb; run with `python -m analysis`."""
