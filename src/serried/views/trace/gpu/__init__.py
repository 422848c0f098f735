"""What is measured of GPUs, for the terminal and as a document."""
