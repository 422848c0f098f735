"""Schedules that put off the weight halves of backwards, so that they fill idle slots."""
