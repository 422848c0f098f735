"""What the page asks of a layout and of a launch config."""
