"""The workbench: a local server, the payload it sends, and the page that draws it."""
