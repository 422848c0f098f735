"""Reads JSON, YAML, TOML and Python configs as data, and knows the line of every key."""
