#!/bin/bash
# HybridParallelPlugin on two nodes of eight GPUs, by the options of ColossalAI's own examples.
colossalai run --nproc_per_node 8 --host gpu01,gpu02 --master_addr gpu01 \
    benchmark.py --plugin 3d --tp 2 --pp 4 --zero 1 --mbs 1
