"""What the page asks of a check's measured bandwidths."""
