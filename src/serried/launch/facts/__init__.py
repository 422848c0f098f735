"""What a launch config says, with its source: the values found and missing, flags and keys."""
