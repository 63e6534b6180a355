"""The cost of the published study: FLOPs over measured or assumed rates."""
