"""A collective and its price as text and documents."""
