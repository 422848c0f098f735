#!/bin/bash
# ZeRO-3 over two hosts, all but a GPU that is out of order.
deepspeed --hostfile hosts --exclude "worker-2:7" \
    train.py --deepspeed_config zero3.json
