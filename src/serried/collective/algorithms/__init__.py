"""One file for each way to run a collective: its picture, its formula, its source."""
