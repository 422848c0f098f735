"""The state of a job that stands still, put together from what its ranks left."""
