"""Sweeps whose runs are compared: recipe, divergences, frozen probes."""
