"""The commands ``serried diagnose`` and ``serried collect``."""
