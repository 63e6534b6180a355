"""What a run costs, before it starts and as it is counted."""
