"""Speed of training, encoding and start-up against peers and limits of the same run."""
