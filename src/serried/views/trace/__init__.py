"""A trace and what was measured of it, as text and as JSON documents."""
