#!/bin/bash
# Llama 3 8B under Megatron-LM on two nodes of eight GPUs.
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-2}
TP=2
PP=4

torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES \
    --node_rank ${NODE_RANK:-0} --master_addr ${MASTER_ADDR:-localhost} --master_port 6000 \
    pretrain_gpt.py \
    --tensor-model-parallel-size $TP \
    --pipeline-model-parallel-size $PP \
    --sequence-parallel \
    --use-distributed-optimizer \
    --num-layers 32 \
    --hidden-size 4096 \
    --ffn-hidden-size 14336 \
    --num-attention-heads 32 \
    --group-query-attention \
    --num-query-groups 8 \
    --seq-length 8192 \
    --max-position-embeddings 8192 \
    --vocab-size 128256 \
    --swiglu \
    --normalization RMSNorm \
    --disable-bias-linear \
    --untie-embeddings-and-output-weights \
    --micro-batch-size 1 \
    --global-batch-size 64 \
    --bf16
