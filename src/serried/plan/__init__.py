"""What a job will cost before it runs.

``request`` holds what is asked: a shape of ``model``, a ``cluster``, the ``degrees`` of a split;
``catalog`` knows both by name.
``memory`` says what each rank of a job holds at most, when and of what; ``reference`` the same of
serried's own training, tensor by tensor; ``model_states`` what parameters, gradients and optimizer
take on a rank of any job, by its sharding and a recipe of ``precision``; ``busbw`` holds what a
job's network was measured to do.
"""
