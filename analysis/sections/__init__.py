"""Further questions put to the same scores, one file each."""
