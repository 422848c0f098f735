"""Following a job that runs: what is said from one look at it to the next."""
