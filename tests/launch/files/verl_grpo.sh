# Two nodes of Ray; Megatron-core trains the actor, and vLLM writes answers on the same GPUs.
set -x
NNODES=${NNODES:-2}
TRAIN_TP=4
TRAIN_PP=2

python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' \
    algorithm.adv_estimator=grpo \
    data.train_files="['/data/gsm8k/train.parquet']" \
    actor_rollout_ref.model.path=/models/qwen3-30b-a3b \
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=$TRAIN_TP \
    actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=$TRAIN_PP \
    actor_rollout_ref.actor.megatron.expert_model_parallel_size=2 \
    actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=1 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=8 \
    trainer.logger='["console"]' \
    trainer.n_gpus_per_node=8 \
    trainer.nnodes=$NNODES $@
