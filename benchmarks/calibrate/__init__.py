"""Calibration of the statistics: levels, coverage and power by simulation."""
