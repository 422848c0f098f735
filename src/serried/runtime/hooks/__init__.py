"""Hooks that tell a recorder what torch, Megatron and DeepSpeed do on a rank."""
