"""What GPUs did, kernel by kernel: a profile of any program, without marks of a pipeline."""
