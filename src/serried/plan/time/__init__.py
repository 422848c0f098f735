"""How long a step takes, and where the time goes, of one job or of many at once as columns."""
