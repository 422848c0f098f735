"""The record of a rank and the trace of a run, in memory and byte by byte."""
