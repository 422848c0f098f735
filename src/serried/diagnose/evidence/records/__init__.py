"""Records: what serried's own recorder and guard leave of each rank, read as it stands."""
