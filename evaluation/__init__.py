"""Checkpoint -> mteb scores: candidates x tasks -> scoring -> mteb's own result layout. Slow imports come late."""
