"""Where trained heads look, and what they lose without a layer."""
