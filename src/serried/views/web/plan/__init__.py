"""Plans of a job as the page asks for them."""
