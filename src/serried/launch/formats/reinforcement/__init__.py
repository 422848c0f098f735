"""Trainers by reinforcement, whose layout is that of what is trained, not of what answers."""
