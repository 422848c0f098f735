"""The settings that ``--set`` takes, framework by framework: meaning, values, default, versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from serried.frameworks import Framework
from serried.views.sentences import read_catalogue

# It matches '(default false)', '(default what all others leave)', and bare '(all)' or '(kinds)'.
_DEFAULT = re.compile(r" ?\((?:default:? ([^()]*)|(kinds|all|false|true))\)")
# It matches ', until 0.13', ', 0.9 to 0.13', ', 0.16 and 0.17' and ', develop-2025-01 only'.
_VERSIONS = re.compile(
    r",? (from [\w.-]+ on|until [\d.]+|before [\d.]+|[\d.]+ (?:to|and) [\d.]+"
    r"|main only|develop(?:-\S+)? only)"
)


LAYERS = {
    "decoder_first_pipeline_num_layers": "layers of the first stage, beside --layers",
    "decoder_last_pipeline_num_layers": "layers of the last stage, beside --layers",
    "pipeline_model_parallel_layout": "which stage holds which layers, such as 'Et*3|t*3|t*3L'",
}
"""Megatron's settings that divide layers over stages, and no ranks (``launch.request``)."""


@dataclass(frozen=True)
class Setting:
    """Holds one setting: its key, what it does, and what it takes, by default and since when."""

    key: str
    meaning: str
    values: tuple[str, ...]
    default: str
    versions: str


def settings_of(framework: Framework) -> tuple[Setting, ...]:
    """Returns the settings of a framework in the order of its table.

    >>> from serried.frameworks import find
    >>> settings_of(find("megatron"))[0]
    Setting(key='use_tp_pp_dp_mapping', meaning='true puts data parallelism outside pipelines', \
values=('true', 'false'), default='false', versions='')
    """
    layers = LAYERS if framework.name == "megatron" else {}
    known = {**framework.options, **layers}
    return tuple(_setting(framework, key, text) for key, text in known.items())


def _setting(framework: Framework, key: str, text: str) -> Setting:
    """Reads what a table says of a key: its default in brackets, its versions after a comma."""
    default = _DEFAULT.search(text)
    bare = _DEFAULT.sub("", text)
    versions = _VERSIONS.search(bare)
    meaning = _VERSIONS.sub("", bare)
    values = framework.traffic_settings.get(key, ())
    # A meaning such as 'true puts data parallelism outside pipelines' tells both values.
    if not values and re.match(r"(true|false)\b", meaning):
        values = ("true", "false")
    given = next((each for each in default.groups() if each), "") if default else ""
    return Setting(key, meaning, values, given, versions[1] if versions else "")


def setting_lines(framework: Framework, lang: str) -> list[tuple[str, str]]:
    """Returns each key with what it does, in ``lang``; values, default and versions behind it."""
    return [(each.key, _told(each, lang)) for each in settings_of(framework)]


def _told(setting: Setting, lang: str) -> str:
    chinese = lang == "zh"
    remarks = {
        ("values", "可取"): ("、" if chinese else ", ").join(setting.values),
        ("default", "默认"): said(setting.default, lang),
        ("versions", "版本"): said(setting.versions, lang),
    }
    colon, stop, gap = ("：", "；", "") if chinese else (": ", "; ", " ")
    parts = [f"{name[chinese]}{colon}{text}" for name, text in remarks.items() if text]
    behind = f"{gap}[{stop.join(parts)}]" if parts else ""
    return said(setting.meaning, lang) + behind


def said(text: str, lang: str) -> str:
    """Returns a meaning, a default or versions in ``lang``; numbers and names stay as they are."""
    return _catalogue(lang).get(text, text)


@cache
def _catalogue(lang: str) -> Mapping[str, str]:
    if lang == "en":
        return {}
    return read_catalogue(Path(__file__).with_name(f"settings.{lang}.toml"))
