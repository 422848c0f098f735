"""Settings of frameworks: what each does, takes and is by default, in both languages."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from serried.frameworks import FRAMEWORKS, find
from serried.launch.request import LAYER_SETTINGS
from serried.views.job.settings_text import _catalogue, setting_lines, settings_of
from tests.conftest import Call
from tests.views.explain.reader import has_chinese

ALL = [each for framework in FRAMEWORKS.values() for each in settings_of(framework)]
NAMES = re.compile(r"[\d.]*|-*\w+|dim_0, dim_1 …|[\w-]+ only")
"""Defaults and versions that are numbers or names, and so the same in every language."""


def test_every_setting_has_a_meaning_apart_from_its_default_and_versions() -> None:
    assert len(ALL) > 100
    for each in ALL:
        assert each.meaning, each
        assert not re.search(
            r"\(default|\bfrom \d|until \d|(main|develop\S*) only", each.meaning
        ), each


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_values_that_a_setting_takes_are_listed(framework: str) -> None:
    listed = {each.key: each.values for each in settings_of(FRAMEWORKS[framework])}
    layers = set(LAYER_SETTINGS) if framework == "megatron" else set()
    assert set(listed) == {*FRAMEWORKS[framework].options, *layers}
    for key, values in FRAMEWORKS[framework].traffic_settings.items():
        assert listed[key] == values


def test_every_meaning_default_and_version_is_said_in_chinese() -> None:
    said = {text for each in ALL for text in (each.meaning, each.default, each.versions) if text}
    written = set(_catalogue("zh"))
    assert {text for text in said - written if not NAMES.fullmatch(text)} == set()
    assert written - said == set()
    assert all(has_chinese(text) for text in _catalogue("zh").values())


def test_a_setting_reads_as_its_table_says() -> None:
    found = {each.key: each for each in settings_of(find("megatron"))}
    gtp = found["gtp_remat_size"]
    assert (gtp.default, gtp.versions) == ("1", "from 0.19 on")
    assert found["sequence_parallel"].values == ("true", "false")
    assert dict(setting_lines(find("megatron"), "zh"))["gtp_remat_size"] == (
        "tp 之外权重再切几份[默认：1；版本：0.19 起]"
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_command_line_lists_them_within_the_terminal(
    serried: Call, monkeypatch: pytest.MonkeyPatch, framework: str, lang: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = serried("groups", "--framework", framework, "--help-settings", "--lang", lang)
    assert told.code == 0
    assert all(key in told.out for key in FRAMEWORKS[framework].options)
    assert max(map(cell_len, told.out.splitlines())) <= 80


def test_settings_of_an_unknown_framework_are_refused(serried: Call) -> None:
    refused = serried("groups", "--framework", "jax", "--help-settings")
    assert refused.code == 2
    assert "framework 'jax' is not known" in refused.err
