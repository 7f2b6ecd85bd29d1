"""The experiments of the paper: one file per task, one training loop for all. Needs `unshuffle[experiments]`."""
