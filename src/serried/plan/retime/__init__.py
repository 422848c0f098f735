"""A recorded run timed again: under other degrees, schedules or numbers of microbatches."""
