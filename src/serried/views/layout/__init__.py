"""A layout as text, as a JSON document and as a picture on its nodes."""
