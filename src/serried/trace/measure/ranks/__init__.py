"""What each rank spent its steps on, and which of them others wait for."""
