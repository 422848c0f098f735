"""Files for containers and clusters hold commands that the command line takes."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from serried.views.cli.main import serried

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def parsed(words: list[str]) -> None:
    """Lets the command of ``words`` read its own words, and runs nothing."""
    group: click.Command = serried
    context = click.Context(group)
    while isinstance(group, click.Group):
        found = group.get_command(context, words[0])
        assert found is not None, words
        group, words = found, words[1:]
    group.make_context(group.name, list(words))


def commands() -> list[list[str]]:
    found = [json.loads(text) for text in re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.M)]
    run = re.findall(r"^#   docker run .*? serried (.+)$", DOCKERFILE, re.M)
    found += [shlex.split(each) for each in run]
    batch = (DEPLOY / "watch.sbatch").read_text(encoding="utf-8").replace("\\\n", " ")
    (watch,) = re.findall(r"^srun .*? serried (.+)$", batch, re.M)
    found.append([re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in shlex.split(watch)])
    return found + [each["args"] for each in containers()]


def containers() -> list[dict[str, Any]]:
    document = yaml.safe_load((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = document["spec"]["template"]["spec"]["containers"]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_in_a_container_is_one_that_serried_takes(words: list[str]) -> None:
    parsed(words)


def test_the_image_has_a_user_without_rights_and_extras_that_there_are() -> None:
    (user,) = re.findall(r"^USER (\d+)$", DOCKERFILE, re.M)
    assert int(user) > 0
    assert f"--uid {user}" in DOCKERFILE
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", DOCKERFILE, re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)
    assert all((ROOT / name).exists() for line in copied for name in line.split())


def test_pods_have_no_rights_and_write_nowhere_but_to_scratch() -> None:
    for each in containers():
        assert each["securityContext"]["readOnlyRootFilesystem"]
        assert not each["securityContext"]["allowPrivilegeEscalation"]
        written = [m["name"] for m in each["volumeMounts"] if not m.get("readOnly")]
        assert written == ["scratch"]
