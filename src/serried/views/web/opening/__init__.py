"""Whatever a user opens: recognised by what it holds, read, and shown in the tab it belongs to."""
