"""What a model is to a planner: its shape, and what follows from the shape alone."""
