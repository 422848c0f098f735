"""What each rank of a planned job holds at most: on which stage, when in a step, and of what."""
