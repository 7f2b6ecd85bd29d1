"""Pictures of what a model learned. Needs `unshuffle[experiments]`; nothing here trains."""
