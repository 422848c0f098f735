"""Merges what the ranks of a run recorded into one trace with aligned clocks."""
