"""Measurements: exactness and speed, printed with what they are compared with."""
