#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --rdzv_backend c10d train.py \
    --model_name_or_path /models/llama \
    --output_dir out \
    --per_device_train_batch_size 2 \
    --fsdp "hybrid_shard auto_wrap" \
    --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer
