"""Explanations of parallel training in English and Chinese, kept as text in TOML files."""
