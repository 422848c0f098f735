"""Models of transformers: built from a config, cut into stages, filled with weights."""
