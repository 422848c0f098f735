"""A report: the page and its answers in one file that opens from disk."""
