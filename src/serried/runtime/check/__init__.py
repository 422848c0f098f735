"""Checks each process group of a layout on real ranks, and measures its bandwidth."""
