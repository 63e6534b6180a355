"""Routing weights of mixtures of experts and hidden states: the studies of MoEE."""
