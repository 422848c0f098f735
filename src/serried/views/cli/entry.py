"""The first thing that ``serried`` runs: it imports next to nothing before it minds Ctrl+C."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits; Ctrl+C while Python loads it ends with 130, in silence."""
    try:
        from serried.views.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
