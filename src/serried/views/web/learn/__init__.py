"""What the page asks of cards and lessons."""
