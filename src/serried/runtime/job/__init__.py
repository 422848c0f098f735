"""What a run is asked to do: its settings, pipeline, shards and report, without torch."""
