"""Published numbers as data: a csv per article, each row a difference or two scores, with where it was read."""
