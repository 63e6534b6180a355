"""The worth of each layer, and the similarity of layers."""
