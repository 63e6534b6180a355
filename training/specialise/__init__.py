"""`python -m training.specialise`: new pairs of a family, written by a base from a hundred examples and filtered."""
