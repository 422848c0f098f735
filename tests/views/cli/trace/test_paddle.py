"""``serried trace paddle`` takes the options of Paddle's script and writes what it writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Call

SAMPLES = Path(__file__).parents[3] / "goldens" / "traces" / "paddle"
NAMES = ("pipeline_profile.json", "pipeline_profile_perfetto.json")


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


@pytest.mark.parametrize("sample", ["single", "sendrecv"])
def test_the_files_in_the_log_folder_hold_the_scripts_events(
    serried: Call, tmp_path: Path, sample: str
) -> None:
    for path in (SAMPLES / sample).glob("workerlog.*"):
        shutil.copy(path, tmp_path)
    answer = serried("trace", "paddle", "--devices", "0,1", "--log_dir", str(tmp_path))
    assert (answer.code, answer.out) == (0, "")
    for name in NAMES:
        assert events(tmp_path / name) == events(SAMPLES / sample / name)
        assert f"wrote {tmp_path / name}\n" in answer.err
    told = "16 recv_forward and send_backward jobs are left out, as by Paddle's script; "
    assert (told in answer.err) == (sample == "sendrecv")


def test_machines_are_read_with_the_scripts_option_and_without(
    serried: Call, tmp_path: Path
) -> None:
    logs = ("--log_dir", str(SAMPLES / "multi"), "--devices", "0,1")
    for name, option in (("with", ["--multi_machine"]), ("without", [])):
        assert serried("trace", "paddle", *logs, *option, "-o", str(tmp_path / name)).code == 0
    for name in NAMES:
        found = (tmp_path / "with" / name).read_bytes()
        assert found == (tmp_path / "without" / name).read_bytes()
        assert len(json.loads(found)["traceEvents"]) == len(events(SAMPLES / "multi" / name))


def test_one_device_alone_is_read(serried: Call, tmp_path: Path) -> None:
    logs = ("--log-dir", str(SAMPLES / "single"), "--devices", "1")
    assert serried("trace", "paddle", *logs, "-o", str(tmp_path)).code == 0
    assert {each["tid"] for each in events(tmp_path / NAMES[0])} == {"GPU1", "Step"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--devices", "0,x"], "--devices 0,x is not a list of device numbers; give such as 0,1"),
        (["--devices", "1,1"], "--devices 1,1 names a device twice"),
        (["--multi_machine"], "holds no folder whose name begins with machine"),
        (["--devices", "7"], "hold no timed job"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    serried: Call, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    logs = ("--log_dir", str(SAMPLES / "single"), "-o", str(tmp_path / "out"))
    answer = serried("trace", "paddle", *logs, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
