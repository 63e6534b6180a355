"""Scores and manifests from disk, checked: results folders, csv files, our runs."""
