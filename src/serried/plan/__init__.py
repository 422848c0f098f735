"""What a job will cost before it runs.

``memory`` says what each rank of the reference training holds at most (from ``training``, by
``states`` and ``activations``); ``busbw`` holds what a job's network was measured to do.
"""
