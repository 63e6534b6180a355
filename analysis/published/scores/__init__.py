"""Scores that articles print, task by task: python -m analysis scores=<file>."""
