"""What a job says of where it is: training is over, a checkpoint is read or written, data is built.

These words accuse nobody; they say in which part of a job a time-out or a kill fell.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "`Trainer.fit` stopped: `max_epochs=9` reached."
>>> [sign.kind for sign in progress_signs(log_line(raw, "x", 1))]
['completed', 'finished']

``completed`` is said at a good end only; ``finished`` also where a rank leaves after an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, all_signs

PROGRESS_KINDS = frozenset(
    (
        "completed",
        "finished",
        "loading",
        "saving",
        "building_data",
        "validating",
        "compiling",
        "measured",
    )
)
_PATTERNS = (
    Pattern(
        "completed",
        r"`max_(?:epochs|steps)=\S*` reached|\[after training is done\]|'train_runtime'|"
        r"Training completed\.|exiting program at iteration|worker group successfully finished|"
        r"^\W*(?:[\w ]{0,20}\W )?Training (?:is )?(?:complete|finished|done)\b",
    ),
    Pattern(
        "finished",
        r"`max_(?:epochs|steps)=\S*` reached|Training (?:is )?(?:complete|finished|done)",
    ),
    Pattern("finished", r"Training completed\.|exiting program at iteration|train_runtime"),
    Pattern("finished", r"destroy_process_group\(\) was not called|\[after training is done\]"),
    Pattern(
        "loading",
        r"Loading checkpoint shards:\s+\d+%.*?(?P<done>\d+)/(?P<all>\d+)|loading checkpoint|"
        r"Loading checkpoint|[Ll]oading (?:model )?weights",
    ),
    Pattern(
        "saving",
        r"[Ss]aving (?:[\w.]+ ){0,4}?(?:checkpoint|state|weights|optimizer|model)|"
        r"saving checkpoint at iteration|save_checkpoint|_save_checkpoint|save_model|"
        r"save_pretrained|"
        r"Checkpoint \S+ is (?:about to be saved|ready now)|"
        r"save_state|_save_to_state_dict|state_dict_for_save|Writing checkpoint|saved checkpoint",
    ),
    Pattern(
        "building_data",
        r"building (?:the )?(?:index|indices|blend|train|data|GPT|shuffle|sample)|> building|"
        r"build_index_map|"
        r"[Bb]uilding dataset|[Cc]aching (?:images|dataset|latents|features|text)|"
        r"[Ss]canning '?\S*(?:images|labels|train|val)|[Rr]esolving data files|"
        r"[Tt]okeniz(?:ing|er on dataset)|Running tokenizer|[Pp]re-?process\w*|"
        r"Generating \w+ split|Preparing (?:train|test|val)|datasets? (?:map|filter)|"
        r"Map \(num_proc|\bexamples/s\b|"
        # a bar that has read for ten minutes and more
        r"\[(?:\d+:)?[1-9]\d:\d\d<[^\]]{1,40}B/s\]|"
        r"train_val_test_data_provider|Converting format of dataset|Map:\s+\d+%|Filter:\s+\d+%",
    ),
    Pattern("validating", r"[Vv]alidat(?:e|ing|ion)(?: epoch)?.*?\brank:? ?(?P<rank>\d+)"),
    Pattern("validating", r"\b[Vv]alidat(?:e|ing|ion)\b|[Ee]valuat(?:e|ing|ion)\b"),
    Pattern("measured", r"^# (?:Avg bus bandwidth|OSU MPI\S* \w+)\b"),
    Pattern("compiling", r"torch\._dynamo|inductor|[Cc]ompiling|triton.*compil"),
)


def progress_signs(line: LogLine) -> Iterator[Sign]:
    """Yields where a job is by a line."""
    yield from all_signs(_PATTERNS, line)
