"""Designs from manifests, and the keys in which manifests differ."""
