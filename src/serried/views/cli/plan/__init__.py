"""The commands that plan: ``serried plan``, ``serried search`` and ``serried tune``."""
