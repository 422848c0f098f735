"""What a machine, its GPUs, its disks and its network print where they fail."""
