"""The schedules, one module each: a picture, its source, a pure function from sizes to actions."""
