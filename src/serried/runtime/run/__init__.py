"""Starts ranks on this machine or under a launcher, runs the training, and sees them end."""
