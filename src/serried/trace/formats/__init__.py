"""Other tools' traces and logs, read and written, one module each."""
