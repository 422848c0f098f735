"""The best layouts of a model on a cluster: all that can be, weighed as columns and ranked."""
