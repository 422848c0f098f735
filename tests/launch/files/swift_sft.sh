nproc_per_node=4
CUDA_VISIBLE_DEVICES=0,1,2,3 \
NPROC_PER_NODE=$nproc_per_node \
swift sft \
    --model Qwen/Qwen2.5-7B-Instruct \
    --tuner_type lora \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps $(expr 16 / $nproc_per_node) \
    --deepspeed zero2
