"""Data, batches, objectives, GradCache and the Lightning module that train one cell of the grid."""
