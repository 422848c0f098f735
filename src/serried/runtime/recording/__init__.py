"""Recording a run: one front for any training loop, one for the reference training."""
