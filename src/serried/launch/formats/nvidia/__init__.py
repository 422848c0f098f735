"""Launch configs of NVIDIA's own trainers: NeMo 1 and 2, Megatron-Bridge, NeMo Automodel."""
