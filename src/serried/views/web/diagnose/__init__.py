"""Diagnoses of jobs as the page asks for them."""
