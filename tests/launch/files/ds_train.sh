#!/bin/bash
# Fine-tunes with ZeRO-3 on the hosts of rack 12, leaving out GPUs that hang.
export NCCL_P2P_DISABLE=0
OUTPUT=${1:-./output}
ZERO_STAGE=3
mkdir -p $OUTPUT

deepspeed --hostfile=./ds_hosts --exclude="worker-1:7@worker-3" \
   --master_port 29600 train.py \
   --data_path Dahoas/rm-static \
   --model_name_or_path facebook/opt-1.3b \
   --per_device_train_batch_size 8 \
   --num_train_epochs 16 \
   --gradient_checkpointing \
   --deepspeed ds_zero3.json \
   --output_dir $OUTPUT \
   &> $OUTPUT/training.log
