"""Cards on words and the twelve lessons, each with the numbers of a job."""
