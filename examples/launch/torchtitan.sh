#!/bin/bash
# Llama 3 8B under torchtitan 0.3 on two nodes of eight GPUs.
NGPU=${NGPU:-8}
torchrun --nnodes 2 --nproc_per_node $NGPU --rdzv_backend c10d \
    --rdzv_endpoint "${MASTER_ADDR:-localhost}:29500" \
    -m torchtitan.train --module llama3 --config llama3_8b \
    --parallelism.tensor_parallel_degree 2 \
    --parallelism.pipeline_parallel_degree 4 \
    --training.seq_len 8192 \
    --training.local_batch_size 8 \
    --training.global_batch_size 64
