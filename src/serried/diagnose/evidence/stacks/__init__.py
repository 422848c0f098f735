"""Stacks of a rank's threads, as py-spy, faulthandler, gdb and pstack print them."""
