"""The published models' shapes with random weights on one GPU."""
