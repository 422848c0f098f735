"""Paddle: the worker logs of its static graph, the records of its dynamic one, its timelines."""
