"""serried's version, which the package's build reads as well."""

from __future__ import annotations

__version__ = "0.1.0"
