"""The questions that an analysis asks of its scores, one per file."""
