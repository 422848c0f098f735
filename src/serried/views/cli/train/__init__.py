"""The command ``serried train``: its options, its progress and its tables."""
