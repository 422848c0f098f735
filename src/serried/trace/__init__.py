"""Traces: the record format, merging the files of many ranks, statistics, other formats."""
