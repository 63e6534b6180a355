"""The published models' shapes with random weights on one card: what is run on it, how it is counted and recorded."""
