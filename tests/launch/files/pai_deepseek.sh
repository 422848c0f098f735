#!/bin/bash
set -e

CURRENT_DIR="$( cd "$( dirname "$0" )" && pwd )"
MEGATRON_PATH=$( dirname $( dirname ${CURRENT_DIR}))
export PYTHONPATH=${MEGATRON_PATH}:$PYTHONPATH
export CUDA_DEVICE_MAX_CONNECTIONS=1

ENV=dsw          # dsw: one machine; dlc: the cluster sets RANK and WORLD_SIZE

if [ -z ${MP_AC_LAYERS} ];then
    MP_AC_LAYERS=1
fi

MODEL_SIZE=A2.4B
BATCH_SIZE=1
GLOBAL_BATCH_SIZE=64
SEQ_LEN=4096
PR=bf16
TP=2
PP=2
CP=1
EP=2
SP=true
DO=true
AC=sel #full
TIMESTAMP=$(date +%Y%m%d_%H%M%S)
TRAIN_ITERS=20
LR_WARMUP_ITERS=2
LR_DECAY_ITERS=$(( ${TRAIN_ITERS} - ${LR_WARMUP_ITERS}))

if [ $ENV = dsw ]; then
export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
MASTER_ADDR=localhost
MASTER_PORT=$(shuf -n 1 -i 10000-65535)
NNODES=1
NODE_RANK=0
GPUS_PER_NODE=8

elif [ $ENV = dlc ]; then

NNODES=${WORLD_SIZE}
NODE_RANK=${RANK}
GPUS_PER_NODE=${KUBERNETES_CONTAINER_RESOURCE_GPU}

fi

if [ -z ${MP_VP} ]; then
    vp_options=""
else
    vp_options=" \
        --num-layers-per-virtual-pipeline-stage ${MP_VP}"
fi

if [ $MODEL_SIZE = A21B ]; then

NUM_LAYERS=60
NUM_EXPERTS=160
moe_options=" \
    --num-experts ${NUM_EXPERTS} \
    --expert-model-parallel-size ${EP} \
    --q-lora-rank 1536"

elif [ $MODEL_SIZE = A2.4B ]; then

NUM_LAYERS=28
NUM_EXPERTS=64
moe_options=" \
    --num-experts ${NUM_EXPERTS} \
    --expert-model-parallel-size ${EP} \
    --kv-lora-rank 512"

fi

TP_COMM_OVERLAP=$(( ($TP > 1) ? 1 : 0 ))
comm_overlap_option="\
    --overlap-grad-reduce"
if [ $TP_COMM_OVERLAP -eq 1 ]; then
    comm_overlap_option="\
        --tp-comm-overlap \
        --overlap-grad-reduce"
fi

if [ $DO = true ]; then
    do_options=" \
            --use-distributed-optimizer"
elif [ $DO = false ]; then
    do_options=" \
                    "
fi

if [ $SP = true ] && [ $TP -gt 1 ]; then
    sp_options=" \
            --sequence-parallel"
elif [ $SP = false ]; then
    sp_options=" \
                    "
fi

megatron_options="  \
        --lr-decay-iters ${LR_DECAY_ITERS} \
        --micro-batch-size ${BATCH_SIZE} \
        --global-batch-size ${GLOBAL_BATCH_SIZE} \
        --num-layers ${NUM_LAYERS} \
        --seq-length ${SEQ_LEN} \
        --eval-iters -1 \
        --tensor-model-parallel-size ${TP} \
        --pipeline-model-parallel-size ${PP} \
        --context-parallel-size ${CP} \
        --no-load-optim \
        --swiglu
        "

DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"

run_cmd="torchrun $DISTRIBUTED_ARGS pretrain_deepseek.py
 ${megatron_options} ${do_options} ${sp_options} ${moe_options} ${vp_options} ${comm_overlap_option}"

echo ${run_cmd}
eval ${run_cmd} | tee train_${TIMESTAMP}.log
set +x
