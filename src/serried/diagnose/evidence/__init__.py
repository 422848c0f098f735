"""Evidence: what a job left behind, read as it stands and judged by nobody yet."""
