"""A file of constants is read whole, or refused in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.plan.calibration.document import constants_text, read_constants
from serried.plan.time.constants import shipped
from serried.views.cli.main import run

LINE = '"{name}" = .*\n'


def written(folder: Path, *lost: str, old: str = "", new: str = "") -> Path:
    """Writes the constants that ship, without some of them or with a text changed."""
    text = constants_text(shipped())
    for name in lost:
        text, count = re.subn(LINE.format(name=re.escape(name)), "", text)
        assert count == 1
    assert old in text
    file = folder / "ours.toml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return file


def test_a_file_of_another_version_is_refused_by_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "cast_mxfp8", "gemm.hopper.16")
    job = "--model llama3-8b --cluster h100 --world-size 8 --tp 8 --sequence 8192"
    words = ["plan", *job.split(), "--global-batch", "8", "--constants", str(file)]
    assert run(words) == 2
    said = capsys.readouterr().err
    assert "lacks constants that plans are made of now (gemm.hopper.16, cast_mxfp8)" in said
    assert "'serried plan --calibrate' makes it again" in said and "Traceback" not in said
    assert run([*words, "--lang", "zh"]) == 2
    assert "缺少现在的规划要用的常数" in capsys.readouterr().err


def test_what_a_gpu_type_reaches_beside_its_generation_may_be_left_out(tmp_path: Path) -> None:
    assert "device.b200.8" not in read_constants(written(tmp_path, "device.b200.8")).entries


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"nic" = { value = ', '"nic" = { value = -', r"nic is -1\.06\d; it is a number above 0"),
        ('"nic" = { value = ', '"nic" = { value = nan, was = ', "nic is nan; it is a number above"),
        ("[constants]", "constants = 3\n[constant]", "constants that cannot be read"),
        ('dense" = [', 'dense" = [0.1, ', "residuals have 4 widths each"),
    ],
)
def test_constants_that_cannot_be_are_named(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        read_constants(written(tmp_path, old=old, new=new))
