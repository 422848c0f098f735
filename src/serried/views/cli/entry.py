"""The first thing that ``serried`` runs: it imports next to nothing before it minds Ctrl+C."""

from __future__ import annotations

import gc
import sys

VALUES_BETWEEN_SEARCHES = 100_000


def main() -> None:
    """Runs the command line and exits; Ctrl+C while Python loads it ends with 130, in silence."""
    # What a command makes mostly lives to its end: looking through all of it for garbage each 700
    # new values, and once more at the exit, took a tenth of the time of a short command.
    gc.set_threshold(VALUES_BETWEEN_SEARCHES)
    try:
        from serried.views.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()
