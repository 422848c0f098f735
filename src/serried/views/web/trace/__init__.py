"""What the page asks of a trace."""
