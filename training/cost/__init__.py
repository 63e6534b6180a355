"""The cost of a run: memory before it starts, floating-point operations as it goes on."""
