"""Causes: what signs mean, class by class, and which of them only follow from another."""
