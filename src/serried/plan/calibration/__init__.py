"""Measured steps, and the constants that are fitted to them."""
