"""Aligns the clocks of hosts, from messages between them, with the uncertainty that is left."""
