"""Routing weights of mixtures of experts beside hidden states: the studies of MoEE."""
