"""Follows shell scripts without running them, as far as they say what a job is started with."""
