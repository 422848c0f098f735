set -x
ray job submit --address="http://127.0.0.1:8265" -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref.num_nodes 1 --ref.num_gpus_per_node 8 \
   --actor.num_nodes 1 --actor.num_gpus_per_node 8 \
   --vllm.num_engines 4 --vllm.tensor_parallel_size 2 \
   --train.colocate_all \
   --ds.zero_stage 3 \
   --ds.ring_attn_size 2 \
   --actor.model_name_or_path /models/qwen
