"""A schedule as text, as a JSON document and as a picture."""
