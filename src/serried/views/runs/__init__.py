"""Runs of real ranks as text and JSON: checks, launch configs, memory."""
