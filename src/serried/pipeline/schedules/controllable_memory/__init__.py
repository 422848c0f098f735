"""V schedules made of repeated building blocks, with as much memory as is asked for."""
