"""What a step's length and a rank's waits come from: one action after another, back in time."""
