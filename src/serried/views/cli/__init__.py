"""The command line: one file per command, which parses, calls, and hands the value to a view."""
