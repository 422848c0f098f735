#!/bin/bash

################
#Load your environments and modules here
################

HOSTFILE=$(realpath hosts.txt)
cd ../..

# NCCL IB environment variables
export NCCL_IB_HCA=mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1
export OMP_NUM_THREADS=8

# 4-tp + 2-pp, num microbatches=8
colossalai run --nproc_per_node 8 --hostfile hosts.txt --master_addr gpu01 benchmark.py -c '70b' --plugin "3d" -l 2048 -g -b 16 -x --tp 4 --pp 2 --zero 1 --mbs 8
