"""The shape of clouds of vectors, and whether it goes with the score."""
