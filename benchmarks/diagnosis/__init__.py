"""Diagnosis of real logs: what is read right, beside the launcher's own word on the same logs."""
