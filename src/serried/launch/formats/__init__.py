"""The kinds of launch config that are read and written, one module each."""
