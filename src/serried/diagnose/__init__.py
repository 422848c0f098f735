"""Diagnosis: which rank hung, which is slow, and why; or what evidence is missing."""
