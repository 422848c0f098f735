"""A collective for the page: what is asked, and its steps as columns."""
