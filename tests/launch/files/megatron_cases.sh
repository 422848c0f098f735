#!/usr/bin/env bash
# Runs the same sizes twice: without and with all-gather groups of their own.
set -euo pipefail

GPUS_PER_NODE=${GPUS_PER_NODE:-8}
NUM_NODES=${NUM_NODES:-1}
PYTHON=${PYTHON:-python}
TP_SIZE=${TP_SIZE:-1}
CP_SIZE=${CP_SIZE:-4}
PP_SIZE=${PP_SIZE:-1}
WORLD_SIZE=$((GPUS_PER_NODE * NUM_NODES))
MODEL_PARALLEL_SIZE=$((TP_SIZE * CP_SIZE * PP_SIZE))
GLOBAL_BATCH_SIZE=${GLOBAL_BATCH_SIZE:-}

if (( WORLD_SIZE % MODEL_PARALLEL_SIZE != 0 )); then
    echo "Error: GPUs must be divisible by TP_SIZE * CP_SIZE * PP_SIZE."
    exit 1
fi
DP_SIZE=$((WORLD_SIZE / MODEL_PARALLEL_SIZE))
GLOBAL_BATCH_SIZE=${GLOBAL_BATCH_SIZE:-$((DP_SIZE * 8))}

DISTRIBUTED_ARGS=(
    --nproc_per_node "$GPUS_PER_NODE"
    --nnodes "$NUM_NODES"
    --node_rank "${NODE_RANK:-0}"
)
MODEL_ARGS=(
    --num-layers "${NUM_LAYERS:-12}"
    --varlen-json '{"mode":"distribution","type":"lognormal"}'
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size "$TP_SIZE"
    --pipeline-model-parallel-size "$PP_SIZE"
    --context-parallel-size "$CP_SIZE"
    --global-batch-size "$GLOBAL_BATCH_SIZE"
)
if (( TP_SIZE > 1 )); then
    PARALLEL_ARGS+=(--sequence-parallel)
fi

iteration_ms() {
    local log_file=$1
    "$PYTHON" - "$log_file" <<'PY'
import re, sys
print(sum(map(float, re.findall(r"(\d+\.\d+) ms", open(sys.argv[1]).read()))))
PY
}

run_case() {
    local name=$1
    shift
    local log_file="out/${name}.log"
    mkdir -p "out/tb_${name}"
    "$PYTHON" -m torch.distributed.run "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \
        "${MODEL_ARGS[@]}" \
        "${PARALLEL_ARGS[@]}" \
        --tensorboard-dir "out/tb_${name}" \
        "$@" 2>&1 | tee "$log_file"
}

run_case baseline \
    --mock-data

run_case again \
    --mock-data \
    --seed 1235

read -r first_ms second_ms < <(iteration_ms out/baseline.log)
awk -v a="$first_ms" 'BEGIN {
    if (a > 0) { printf "%.2f\n", a } else { print "nan" }
}'
