"""Waits: what each rank was doing, who waits for whom, and where the chain of waiting ends."""
