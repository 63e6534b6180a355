"""What the published study costs: FLOPs of its recipe and of its scoring, over measured or assumed rates."""
