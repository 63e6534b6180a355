"""The shape of clouds of vectors, and its relation to the score."""
