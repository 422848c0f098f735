"""Waits: who waits for whom, and where the chain of waiting ends."""
