"""A Llama-like 7B under InternEvo on sixteen GPUs: torchrun train.py --config internevo.py."""

SEQ_LEN = 4096
model = dict(
    num_layers=32,
    hidden_size=4096,
    num_attention_heads=32,
    num_kv_attention_heads=8,
    mlp_ratio=3.5,
    vocab_size=92544,
    dtype="torch.bfloat16",
)
data = dict(seq_len=SEQ_LEN, micro_num=8, micro_bsz=1)
parallel = dict(
    zero1=dict(size=-1),
    tensor=dict(size=2, mode="mtp"),
    pipeline=dict(size=4),
    weight=dict(size=1),
)
