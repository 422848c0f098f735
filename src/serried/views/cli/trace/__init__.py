"""The commands under ``serried trace``, one module each."""
