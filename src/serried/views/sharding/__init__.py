"""What ranks share of their weights' state, as text, JSON and pictures."""
