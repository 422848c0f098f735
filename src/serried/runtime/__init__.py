"""Real training runs: the only room that imports torch. Start with ``settings`` and ``launch``."""
