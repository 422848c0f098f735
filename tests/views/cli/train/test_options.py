"""The options of a run are its settings' own fields: none is missing, and defaults are the same."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click
import pytest

from serried.errors import InputError
from serried.runtime.job.option import options_of
from serried.runtime.job.settings import (
    CheckpointSettings,
    Emulated,
    ModelSizes,
    OptimizerSettings,
    TrainSettings,
    Validation,
)
from serried.views.cli.train.command import train
from serried.views.cli.train.options import train_settings
from tests.views.explain.reader import has_chinese

PARTS = (ModelSizes, OptimizerSettings, CheckpointSettings, Validation, Emulated)
NO_OPTION = {
    *("world_size", "model", "optimizer", "checkpoints", "validation", "emulated"),
    "token_cache",
}
"""What --nproc and XDG_CACHE_HOME say, and the parts whose fields have options themselves."""


def options(*words: str) -> dict[str, Any]:
    """Returns what the command reads of its words."""
    params: dict[str, Any] = train.make_context("train", list(words)).params
    return params


def test_options_that_are_not_given_make_the_settings_own_defaults() -> None:
    assert train_settings(None, options()) == TrainSettings(world_size=1)


@pytest.mark.parametrize("settings", [TrainSettings, *PARTS])
def test_every_field_has_an_option_with_help_in_both_languages(settings: type) -> None:
    asked = {each.field for each in options_of(settings)}
    assert {each.name for each in fields(settings)} - asked - NO_OPTION == set()
    flags = {flag for param in train.params for flag in param.opts}
    for each in options_of(settings):
        assert each.flag in flags
        assert each.help["en"].endswith(".") and has_chinese(each.help["zh"])


def test_each_kind_of_word_reaches_its_field() -> None:
    words = ("--pp", "2", "--schedule", "gpipe", "--dropout", "0.5", "--tie", "--dtype", "float64")
    more = ("--save-dir", "runs", "--save-every", "3", "--trace-steps", "3:6", "--lr", "1e-4")
    made = train_settings(None, options(*words, *more, "--set", "use_tp_pp_dp_mapping=true"))
    assert (made.world_size, made.pp, made.schedule, made.dtype) == (2, 2, "gpipe", "float64")
    assert (made.model.dropout, made.model.tie, made.optimizer.lr) == (0.5, True, 1e-4)
    assert (str(made.checkpoints.folder), made.checkpoints.every) == ("runs", 3)
    assert (made.trace_steps, made.options) == ((3, 6), {"use_tp_pp_dp_mapping": "true"})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--save-dir", "a", "--keep", "0"), "keep=0; it is at least 1"),
        (("--lr", "0"), "lr=0.0; it is above zero"),
        (("--dropout", "1"), "dropout=1.0; it is from 0 up to, but not, 1"),
        (("--validate-every", "-1"), "validate_every=-1; it is zero or more"),
        (("--forward-ms", "3"), "--forward-ms and --backward-ms are times of emulated compute; "),
    ],
)
def test_a_setting_out_of_its_bounds_is_named_as_its_option(
    words: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        train_settings(None, options(*words))
    assert str(refused.value).startswith(sentence)


def test_steps_to_record_are_a_first_and_an_end() -> None:
    with pytest.raises(InputError, match="--trace-steps takes FIRST:END"):
        options("--trace-steps", "3")


def test_choices_are_those_of_the_field_s_type() -> None:
    with pytest.raises(click.BadParameter, match="'ring', 'ring-two-pass', 'ulysses'"):
        options("--cp-form", "star")
