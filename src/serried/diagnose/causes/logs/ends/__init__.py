"""Processes that ended: by the host's memory, a signal, an exit code, a person."""
