"""What a cluster is to a planner: its GPUs, how they are joined, and what they can do at most."""
