"""A training step of the reference model: data, stage, optimizer, validation."""
