"""Megatron-LM's printed timers, and what they tell of a step."""
