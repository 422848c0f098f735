"""What a recording stands on: the clock of a rank, its file, its window, its job."""
