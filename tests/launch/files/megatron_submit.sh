#!/bin/bash
# Writes a Slurm job and submits it; edit the block below, not the job.

MEGATRON_PATH=${MEGATRON_PATH:-"/opt/megatron"}
OUTPUT_PATH=${OUTPUT_PATH:-"/results"}
SHARDING_STRATEGY=${SHARDING_STRATEGY:-"optim_grads_params"}
USE_MEGATRON_FSDP=${USE_MEGATRON_FSDP:-1}
PROFILE=${PROFILE:-0}
TP=${TP:-2}
EP=${EP:-8}
NODES=4

PRETRAIN_ARGS=(
    --distributed-timeout-minutes 60
    --tensor-model-parallel-size ${TP}
    --expert-model-parallel-size ${EP}
    --expert-tensor-parallel-size 1
    --use-distributed-optimizer
    --recompute-modules mlp moe layernorm
    --num-layers 61
    --moe-layer-freq [0]*3+[1]*58
    --num-experts 256
)

if [ "${USE_MEGATRON_FSDP}" = 1 ]; then
    unset CUDA_DEVICE_MAX_CONNECTIONS
    PRETRAIN_ARGS=(
        "${PRETRAIN_ARGS[@]}"
        --use-megatron-fsdp
        --data-parallel-sharding-strategy ${SHARDING_STRATEGY}
    )
fi

PROFILE_CMD=""
if [ "${PROFILE}" = 1 ]; then
    PROFILE_CMD="nsys profile -f true -o ${OUTPUT_PATH}/nsys/tp${TP}ep${EP}"
fi

TRAINING_CMD="
cd ${MEGATRON_PATH};
git rev-parse HEAD;
export PYTHONPATH=${MEGATRON_PATH}:${PYTHONPATH};
${PROFILE_CMD} python ${MEGATRON_PATH}/pretrain_gpt.py ${PRETRAIN_ARGS[@]}"

SLURM_LOGS="${OUTPUT_PATH}/slurm_logs"
mkdir -p ${SLURM_LOGS} || {
    echo "Error: no ${SLURM_LOGS}"
    exit 1
}

set +e
sbatch <<EOJ
#!/bin/bash

#SBATCH --job-name=dsv3
#SBATCH --nodes=${NODES}
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8
#SBATCH --exclusive

srun \
    --mpi=pmix -l \
    --container-image=img.sqsh \
    bash -x -c "${TRAINING_CMD}" 2>&1 | tee ${SLURM_LOGS}/\${SLURM_JOB_ID}.log

EOJ
set -e
