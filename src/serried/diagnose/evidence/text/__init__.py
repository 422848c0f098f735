"""Text: what the lines of logs state, by who prints them."""
