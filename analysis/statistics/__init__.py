"""Arrays in, numbers out: every test and interval, each without pandas where it can be."""
