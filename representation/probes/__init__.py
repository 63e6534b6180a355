"""LLM2Vec's two probes: reading ahead, and the effect of the mask alone."""
