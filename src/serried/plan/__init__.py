"""What a job will cost before it runs.

``memory`` says what each rank of the reference training holds at most (from ``training``, by
``states`` and ``activations``); ``model_states`` what parameters, gradients and optimizer take on
a rank of any job, by its sharding and a recipe of ``precision``; ``busbw`` holds what a job's
network was measured to do.
"""
