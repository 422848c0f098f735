"""Launch files in the encodings that people write them in, by mark, then UTF-8, then GB18030."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.launch.facts.source import encoding_of, text_of
from serried.launch.read import read_path
from serried.limits import LAUNCH_BYTES
from tests.conftest import Call

SCRIPT = """#!/bin/bash
# 预训练：张量并行 2，流水线并行 4，共 16 张卡
NAME="大模型（第一版）"
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \\
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4
"""


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [
        ("utf-8", "UTF-8"),
        ("utf-8-sig", "UTF-8"),
        ("gbk", "GB18030"),
        ("gb2312", "GB18030"),
        ("gb18030", "GB18030"),
        ("utf-16", "UTF-16"),
        ("utf-32", "UTF-32"),
    ],
)
def test_a_script_is_read_in_every_encoding_that_editors_write(codec: str, encoding: str) -> None:
    text = text_of(SCRIPT.replace("\n", "\r\n").encode(codec), "run.sh")
    assert (text, encoding_of(text)) == (SCRIPT, encoding)


def test_utf_16_is_read_whichever_byte_comes_first() -> None:
    for mark, codec in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        assert text_of(mark + SCRIPT.encode(codec), "run.sh") == SCRIPT


def test_utf_8_with_a_broken_letter_stays_utf_8() -> None:
    data = SCRIPT.encode()
    place = data.index("张".encode())
    text = text_of(data[:place] + data[place + 1 :], "run.sh")
    assert encoding_of(text) == "UTF-8"
    assert "流水线并行" in text


def test_plain_letters_with_one_of_latin_1_are_read() -> None:
    assert "--tensor" in text_of(SCRIPT.encode("ascii", "ignore") + b"# caf\xe9\n", "run.sh")


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" * 9, b"\x80\x81\xff\xfe" * 99, b"a\0b"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="is not text"):
        text_of(data, "x.sh")


def test_a_text_at_the_limit_is_read_and_one_beyond_is_not() -> None:
    assert len(text_of(b"#" * LAUNCH_BYTES.most, "x.sh")) == LAUNCH_BYTES.most
    with pytest.raises(InputError, match="holds more than 1 MB"):
        text_of(b"#" * (LAUNCH_BYTES.most + 1), "x.sh")


def test_the_sources_say_the_encoding_of_each_file_that_was_used(
    tmp_path: Path, serried: Call
) -> None:
    (tmp_path / "run.sh").write_bytes(SCRIPT.replace("#!/bin/bash\n", "source sizes.sh\n").encode())
    (tmp_path / "sizes.sh").write_bytes("# 大小\nCP=2\n".encode("gbk"))
    script = tmp_path / "run.sh"
    assert read_path(script).encodings == {}
    script.write_bytes((SCRIPT.strip() + " --context-parallel-size $CP\n").encode("utf-16"))
    assert read_path(script).encodings == {"run.sh": "UTF-16"}
    text = "source sizes.sh\n" + SCRIPT.strip() + " --context-parallel-size 1\n"
    script.write_bytes(text.encode("gbk"))
    answer = serried("groups", str(script), "--sources", "--lang", "zh")
    assert answer.code == 0, answer.err
    row = next(line for line in answer.out.splitlines() if "encoding" in line)
    assert row.split()[1:] == ["GB18030", "run.sh"]
