"""The job that is asked for, however it is asked, as one value that leads to a Layout."""
