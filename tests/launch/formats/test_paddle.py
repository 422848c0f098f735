"""PaddleNLP configs: what they leave open is asked for with an answer that Paddle takes."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.frameworks import layout
from serried.launch.read import read

SHARDED = """{"tensor_parallel_degree": 4, "pipeline_parallel_degree": 2,
              "sharding": "stage1", "sharding_parallel_degree": 2}"""


def test_the_order_that_a_refusal_suggests_is_one_that_paddle_takes() -> None:
    config = read(SHARDED, name="paddle.json")
    with pytest.raises(InputError, match=r"give it, such as --order sharding_first$"):
        config.sizes({"world_size": 32})
    asked = config.sizes({"world_size": 32, "order": "sharding_first"})
    assert layout(str(config.framework_at), asked).order == "dp,sharding,pp,sep,mp"
