"""Stragglers: who or what makes a job slower than it could be, since when, and what it costs."""
