"""Checkpoints of the reference training: written, found, loaded anew at other sizes, exported."""
