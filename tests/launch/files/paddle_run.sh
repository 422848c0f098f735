#!/bin/bash
set -x
unset PADDLE_ELASTIC_JOB_ID
export PYTHONPATH=../../:$PYTHONPATH
export FLAGS_embedding_deterministic=1

task_name="llama_hybrid"
rm -rf output/$task_name/

python -u  -m paddle.distributed.launch \
    --gpus "0,1,2,3,4,5,6,7" \
    --ips 10.1.0.1,10.1.0.2 \
    --log_dir "output/$task_name""_log" \
    run_pretrain.py \
    ./config/paddle_pretrain.json
