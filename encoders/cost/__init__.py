"""The cost of encoding, counted from shapes: floating-point operations and bytes, without weights."""
