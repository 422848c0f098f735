# For more information on multi-node training launch methods, refer to the docs.

PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \
CUDA_VISIBLE_DEVICES=0,1,2,3 \
NNODES=2 \
NODE_RANK=0 \
MASTER_ADDR=127.0.0.1 \
MASTER_PORT=29500 \
NPROC_PER_NODE=4 \
megatron sft \
    --model Qwen/Qwen3-30B-A3B \
    --load_safetensors true \
    --dataset 'liucong/Chinese-DeepSeek-R1#500' \
    --tensor_model_parallel_size 2 \
    --expert_model_parallel_size 4 \
    --micro_batch_size 1 \
    --recompute_granularity selective \
    --lr 1e-5 \
    --save megatron_output/Qwen3 \
    --sequence_parallel true \
    --attention_backend flash
