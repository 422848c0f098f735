"""Steps: how long each rank took for each step, from records, traces, dumps or lines of logs."""
