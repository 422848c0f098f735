"""Collecting: what a job left on its hosts, brought into one folder, bounded and whole."""
