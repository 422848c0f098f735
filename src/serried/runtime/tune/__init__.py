"""Layouts for the ranks at hand: planned from a few short runs, the best of them run for real."""
