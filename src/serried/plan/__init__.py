"""What a job will cost before it runs; ``busbw`` holds what its network was measured to do."""
