"""Collectives as data: algorithms from ranks and nodes to steps, executed on blocks and priced."""
