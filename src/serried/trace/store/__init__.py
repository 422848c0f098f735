"""The Parquet store of a merged trace: its table of spans and what is said about them."""
