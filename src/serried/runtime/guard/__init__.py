"""Guard: what a rank leaves when it hangs, is stopped or fails, without the other ranks."""
