"""Faults injected into real ranks at random places, and whether their root is named."""
