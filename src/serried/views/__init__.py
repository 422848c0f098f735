"""What people see: command line, text, web. Views show values; they never compute them."""
