"""Records of a run on disk: its folder, its manifest, files that are never half-written."""
