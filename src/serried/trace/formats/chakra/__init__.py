"""Chakra execution traces, which ASTRA-sim and other simulators of networks read."""
