"""The kinds of files that can be opened, each with the tab of the page that shows it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from serried.finding import Sentence, said

Tab: TypeAlias = Literal["layout", "plan", "run", "diagnose"]


class Kind(StrEnum):
    """Names what a file is."""

    LAUNCH = "launch"
    HOSTFILE = "hostfile"
    MODEL = "model"
    RECORDING = "recording"
    STORE = "store"
    EVENTS = "events"
    PERFETTO = "perfetto"
    NSIGHT = "nsight"
    PARQUET = "parquet"
    PADDLE_LOG = "paddle-log"
    PADDLE_RECORDS = "paddle-records"
    DUMP = "dump"
    STACKS = "stacks"
    LOG = "log"
    CHECK = "check"
    PLAN = "plan"
    DIAGNOSIS = "diagnosis"
    GROUPS = "groups"
    BESIDE = "beside"
    """Belongs to what lies beside it, such as the names of a recording's spans."""


TABS: dict[Kind, Tab] = {
    Kind.LAUNCH: "layout",
    Kind.HOSTFILE: "layout",
    Kind.GROUPS: "layout",
    Kind.CHECK: "layout",
    Kind.MODEL: "plan",
    Kind.PLAN: "plan",
    Kind.RECORDING: "run",
    Kind.STORE: "run",
    Kind.EVENTS: "run",
    Kind.PERFETTO: "run",
    Kind.NSIGHT: "run",
    Kind.PARQUET: "run",
    Kind.PADDLE_LOG: "run",
    Kind.PADDLE_RECORDS: "run",
    Kind.DUMP: "diagnose",
    Kind.STACKS: "diagnose",
    Kind.LOG: "diagnose",
    Kind.DIAGNOSIS: "diagnose",
}

NAMES: dict[Kind, Sentence] = {
    Kind.LAUNCH: said("a launch file"),
    Kind.HOSTFILE: said("a hostfile"),
    Kind.MODEL: said("a model's config"),
    Kind.RECORDING: said("a recording of serried"),
    Kind.STORE: said("a store of serried"),
    Kind.EVENTS: said("a trace of events"),
    Kind.PERFETTO: said("a Perfetto trace"),
    Kind.NSIGHT: said("an export of Nsight Systems"),
    Kind.PARQUET: said("a table of operations"),
    Kind.PADDLE_LOG: said("a worker log of Paddle"),
    Kind.PADDLE_RECORDS: said("records of Paddle"),
    Kind.DUMP: said("a flight-recorder dump"),
    Kind.STACKS: said("stacks of threads"),
    Kind.LOG: said("a log"),
    Kind.CHECK: said("a report of serried check"),
    Kind.PLAN: said("a plan of serried"),
    Kind.DIAGNOSIS: said("a diagnosis of serried"),
    Kind.GROUPS: said("groups as JSON"),
}
"""What a file is called when one speaks of it."""
