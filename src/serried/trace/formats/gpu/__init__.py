"""Profiles of GPUs by torch.profiler (Kineto) and Nsight Systems, read as columns."""
