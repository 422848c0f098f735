set -x
NUM_GPUS=8
uv run --isolated --extra fsdp -m skyrl.train.entrypoints.main_base \
  data.train_data="['$HOME/data/gsm8k/train.parquet']" \
  trainer.algorithm.advantage_estimator="grpo" \
  trainer.strategy=fsdp \
  trainer.placement.colocate_all=true \
  trainer.placement.policy_num_nodes=2 \
  trainer.placement.policy_num_gpus_per_node=$NUM_GPUS \
  trainer.policy.sequence_parallel_size=2 \
  generator.inference_engine.tensor_parallel_size=4 \
  "$@"
