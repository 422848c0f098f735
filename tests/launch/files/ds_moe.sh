#!/bin/bash
DIR=`pwd`
### Main configs
SEQ_LEN=2048
MODEL_SIZE=0.35
NUM_LAYERS=24
GLOBAL_BATCH_SIZE=256
# GLOBAL_BATCH_SIZE=512
TRAIN_TOKENS=300000000000
TRAIN_ITERS=$(( ${TRAIN_TOKENS} * 3 / ${GLOBAL_BATCH_SIZE} / ${SEQ_LEN} ))

## Model parallelism, 1 is no MP
MP_SIZE=1
## Pipeline parallelism: not supported with MoE, see --no-pipeline-parallel
PP_SIZE=1
NUM_GPUS=64

## Number of experts. EP_SIZE 1 means dense model without MoE
EP_SIZE=128
if [[ $EP_SIZE -gt $NUM_GPUS ]]; then
    EP_PARALLEL_SIZE=$NUM_GPUS
else
    EP_PARALLEL_SIZE=$EP_SIZE
fi

CL_ENABLED="false"
current_time=$(date "+%Y.%m.%d-%H.%M.%S")
host="${HOSTNAME}"
NAME="gpt-${MODEL_SIZE}B-gpus-${NUM_GPUS}-mp-${MP_SIZE}-pp-${PP_SIZE}"
if [ "${CL_ENABLED}" = "true" ]; then
    NAME="${NAME}-cl"
fi
OUTPUT_BASEPATH=$DIR/output
mkdir -p "${OUTPUT_BASEPATH}/log/"

megatron_options=" \
        --override-lr-scheduler \
        --tensor-model-parallel-size ${MP_SIZE} \
        --moe-expert-parallel-size ${EP_PARALLEL_SIZE} \
        --num-experts ${EP_SIZE} \
        --num-layers ${NUM_LAYERS} \
        --train-iters ${TRAIN_ITERS} \
        --fp16"

template_json="ds_config_gpt_TEMPLATE.json"
config_json="ds_config_gpt_${NAME}.json"
sed "s/CONFIG_BATCH_SIZE/${GLOBAL_BATCH_SIZE}/" ${template_json} \
    | sed "s/CONFIG_FP16_ENABLED/true/" \
	  > ${config_json}

deepspeed_options=" \
		    --deepspeed \
		    --deepspeed_config ${config_json} \
		    --pipeline-model-parallel-size ${PP_SIZE}"
if [[ $EP_SIZE -gt 1 ]]; then
deepspeed_options="${deepspeed_options} \
        --no-pipeline-parallel"
fi

run_cmd="deepspeed --num_nodes 8 --num_gpus 8 ${DIR}/../../pretrain_gpt.py ${megatron_options} ${deepspeed_options} &> ${OUTPUT_BASEPATH}/log/${NAME}_${host}_${current_time}.log"
echo ${run_cmd}
eval ${run_cmd}
set +x
