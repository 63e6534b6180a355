"""What each layer is worth, and how layers resemble one another."""
