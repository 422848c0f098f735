"""The command ``serried groups``: its options and its answers."""
