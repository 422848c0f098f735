"""Causes in logs: what the signs of text mean, subject by subject, and which comes first."""
