"""Scores from disk, checked: results folders, csv files, our runs."""
