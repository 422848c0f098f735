"""Reads launch configs that users already have, and writes ones for the same layout.

The reader never runs what it reads. ``read.read`` takes text, ``read_among`` several texts,
``read_path`` a file or a folder; ``write.write`` gives the text of a file for a target of
``TARGETS``, proved by reading it back. ``request`` is what is asked of a layout. Nothing is
imported here: who asks for a layout alone does not load the readers.
"""
