"""What a run leaves on disk: its folder, its manifest, files that are never half-written."""
