"""Programs that start ranks (torchrun, srun, deepspeed …), and the world that they start."""
