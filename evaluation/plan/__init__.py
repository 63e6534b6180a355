"""The work, time and space of a command before it runs."""
