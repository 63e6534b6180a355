"""Commands that are killed, starved of disk, or given damaged files: nothing may be lost."""
