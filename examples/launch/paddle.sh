#!/bin/bash
# PaddleNLP's run_pretrain.py on two nodes of eight GPUs.
python -m paddle.distributed.launch --devices 0,1,2,3,4,5,6,7 --ips 10.1.0.1,10.1.0.2 \
    --log_dir log run_pretrain.py paddle.json
