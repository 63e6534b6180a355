"""A study as commands: which runs are trained and scored, and their processes."""
