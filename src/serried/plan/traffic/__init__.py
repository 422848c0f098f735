"""What a step sends: which collective, how many bytes a rank, how often, over which links."""
