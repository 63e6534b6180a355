"""One objective per file: its checks, data, batches, loss and held-out scores."""
