"""What logs tell of collectives and messages that did not end, or did not match."""
