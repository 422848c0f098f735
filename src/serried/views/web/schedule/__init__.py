"""What the page asks of a schedule."""
