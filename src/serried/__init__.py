"""serried: every rank of a parallel training job, in view."""

__version__ = "0.1.0"
