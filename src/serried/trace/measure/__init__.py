"""What a trace says: statistics, idle time and its causes, lateness, comparison with a plan."""
