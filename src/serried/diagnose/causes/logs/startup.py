"""The start of a job: launchers, and the stores through which ranks find one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.nccl_ids import id_candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.causes.logs.store_waits import store_candidates
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.finding import said

_FIRST = said("look at what rank 0 does: it opens the store when it reaches init_process_group")
_FIREWALL = said("open the port between the hosts (nc -vz HOST PORT), and check MASTER_ADDR")

_OWN_HOST = re.compile(r"(?:127\.|localhost$|::1$)")

_RENDEZVOUS = SignMeaning(
    ("rendezvous", "store_wait"),
    CauseClass.STARTUP,
    "init_rendezvous",
    Standing.WAITS,
    (
        said(
            "{who} waited at the store for the key {key}, which another rank sets as it comes to "
            "the same point: that one did not come in time"
        ),
        said(
            "the ranks did not find one another at the start: the rendezvous failed or ran out "
            "of time"
        ),
    ),
    (_FIRST, _FIREWALL),
    0.7,
    "unknown",
)
_MEANINGS = (
    SignMeaning(
        ("clients",),
        CauseClass.STARTUP,
        "init_rendezvous",
        Standing.CONNECTION,
        (
            said(
                "only {joined} of {expected} ranks came to the start: the others never reached "
                "init_process_group"
            ),
        ),
        (
            said("see which ranks did not start: compare the scheduler's tasks with the logs"),
            _FIREWALL,
        ),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("store_unreachable",),
        CauseClass.STARTUP,
        "init_rendezvous",
        Standing.CONNECTION,
        (
            said(
                "{who} could not reach the store at {address}:{port} for {seconds} s: nothing "
                "opened it there, or the way is closed"
            ),
            said(
                "{who} could not reach the store at {address}:{port}: nothing opened it there, or "
                "the way is closed"
            ),
        ),
        (_FIRST, _FIREWALL),
        0.85,
        "unknown",
    ),
    _RENDEZVOUS,
    SignMeaning(
        ("hosts_awaited",),
        CauseClass.STARTUP,
        "init_rendezvous",
        Standing.WAITS,
        (
            said(
                "JAX waited more than {seconds} s for its devices at the start: hosts of the slice "
                "that do not run the program are the usual reason"
            ),
        ),
        (said("start the same program on every host of the slice, and look for one that failed"),),
        0.6,
        "unknown",
    ),
    SignMeaning(
        ("environment",),
        CauseClass.STARTUP,
        "init_environment",
        Standing.ROOT,
        (said("the variable {variable} is not set: the script was started without a launcher"),),
        (said("start it by torchrun, srun or the framework's own launcher, which set it"),),
        0.95,
        "nobody",
    ),
    SignMeaning(
        ("mpi_unbegun",),
        CauseClass.STARTUP,
        "init_environment",
        Standing.ROOT,
        (said("{call} was called before MPI_Init: the program had not started MPI"),),
        (
            said(
                "call MPI_Init first; mpi4py does so as MPI is imported from it, unless "
                "mpi4py.rc.initialize is False"
            ),
        ),
        0.9,
        "nobody",
    ),
    SignMeaning(
        ("rank_twice",),
        CauseClass.STARTUP,
        "rank_numbers",
        Standing.CONNECTION,
        (
            said(
                "a process called itself rank {twice} in a group of {size}: the launchers did not "
                "agree on numbers"
            ),
            said("two processes called themselves rank {twice}: the launchers gave it twice"),
            said("two processes called themselves the same rank: the launchers gave it twice"),
        ),
        (
            said(
                "let one launcher give all numbers: the same --nnodes and --nproc-per-node on each "
                "node, and --node-rank different on each"
            ),
        ),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("invalid_usage",),
        CauseClass.STARTUP,
        "nccl_usage",
        Standing.NOTICED,
        (
            said(
                "NCCL was called in a way that it does not allow, as a rule two ranks on one GPU "
                "or more ranks than GPUs"
            ),
        ),
        (
            said(
                "call torch.cuda.set_device(local_rank) before the first collective, and check "
                "CUDA_VISIBLE_DEVICES"
            ),
            said("run again with NCCL_DEBUG=WARN: the first WARN line names the failing call"),
        ),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("launch_failed",),
        CauseClass.STARTUP,
        "launch_failed",
        Standing.ENDED,
        (said("a task or container could not be started"),),
        (said("read what the scheduler says of it: kubectl describe pod, scontrol show job"),),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("ssh_refused",),
        CauseClass.STARTUP,
        "launch_failed",
        Standing.ENDED,
        (
            said("the launcher could not log in to {peer_host} by ssh, and started nothing there"),
            said("a host refused the launcher's login by ssh, and nothing was started there"),
        ),
        (
            said(
                "log in from the launcher's host as the same user: ssh HOST hostname must answer "
                "without asking for a password or for a key"
            ),
        ),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("restart_loop",),
        CauseClass.STARTUP,
        "launch_failed",
        Standing.FOLLOWS,
        (
            said(
                "a container ends again and again soon after it was started; why stands in the log "
                "of the start before"
            ),
        ),
        (
            said(
                "kubectl logs POD --previous shows that log, kubectl describe pod POD the exit "
                "code of the container and its events"
            ),
        ),
        0.6,
        "unknown",
    ),
    SignMeaning(
        ("no_command",),
        CauseClass.STARTUP,
        "launch_failed",
        Standing.NOTICED,
        (
            said("the program {program} was not found where the job was started"),
            said("a program was not found where the job was started"),
        ),
        (said("load its module or its environment in the script, or name its whole path"),),
        0.6,
        "unknown",
    ),
)
_DUPLICATE = SignMeaning(
    ("duplicate_gpu",),
    CauseClass.STARTUP,
    "duplicate_gpu",
    Standing.ROOT,
    (said("ranks {one} and {two} use the same GPU: each rank needs one of its own"),),
    (
        said(
            "call torch.cuda.set_device(local_rank) before the first collective, and check "
            "CUDA_VISIBLE_DEVICES"
        ),
    ),
    0.95,
    "nobody",
)

_STORE_OF = "torch/distributed/rendezvous.py"
"""Where torch opens the store of a job, or looks for it."""
_NO_CONNECTION = re.compile(r"Connection (?:timed out|refused|reset)|No route to host")
_TELL_START = ("store_unreachable", "store_wait", "rendezvous", "store_barrier", "clients")
"""Signs of a start that failed, beside which a traceback's words say no more."""
TRACEBACK = 20
"""Lines within which a traceback's frame has its error."""


def startup_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what kept ranks from starting or finding one another."""
    for each in map(_at_home, candidates(told, (*_MEANINGS, _DUPLICATE))):
        is_waiting = each.cause.kind == "init_rendezvous" and each.standing is Standing.WAITS
        if is_waiting and (_is_of_watch(told, each) or _is_of_answer(told)):
            continue
        if is_waiting and told.first("building_data") is not None:
            stall = replace(each.cause, cause_class=CauseClass.DATA, kind="data_stall")
            yield replace(each, cause=stall)
        else:
            yield each
    yield from _unmet(told)
    yield from _store_lost_at_start(told)
    yield from id_candidates(told)
    yield from store_candidates(told)


def _is_of_answer(told: LoggedSigns) -> bool:
    """Tells whether a wait is that at a store that was reached, which is told in full."""
    return told.first("store_answer") is not None and told.first("rendezvous") is None


def _at_home(each: RankedCause) -> RankedCause:
    """Returns a cause without a word of firewalls, where the store is on the rank's own host."""
    values = each.cause.verdict.values
    if not _OWN_HOST.match(str(values.get("address", ""))):
        return each
    verdict = said(
        "{who} could not reach the store at {address}:{port} on its own host: nothing opened it",
        **values,
    )
    if "seconds" in values:
        verdict = said(
            "{who} could not reach the store at {address}:{port} on its own host for {seconds} s: "
            "nothing opened it",
            **values,
        )
    cures = tuple(cure for cure in each.cause.cures if cure is not _FIREWALL)
    return replace(each, cause=replace(each.cause, verdict=verdict, cures=cures))


def _unmet(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields that a launcher ended in the rendezvous, where it says no more than that it left."""
    left = told.of("agent_lost")
    states = told.of("rendezvous_begun", "rendezvous_met")
    is_open = bool(states) and states[-1].kind == "rendezvous_begun"
    if left and is_open and all("last" in sign.facts for sign in left):
        yield candidate(told, _RENDEZVOUS, left)


def _store_lost_at_start(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields a store that a rank could not reach, where only its traceback says that it was one."""
    if told.first(*_TELL_START) is None and (
        lost := [sign for sign in told.of("exception") if _is_of_store(sign)]
    ):
        yield candidate(told, _RENDEZVOUS, lost)


def _is_of_store(exception: Sign) -> bool:
    frames = exception.facts.get("frames")
    inner = str(frames[-1][0]) if isinstance(frames, tuple) and frames else ""
    return inner.endswith(_STORE_OF) and bool(_NO_CONNECTION.search(exception.text))


def _is_of_watch(told: LoggedSigns, start: RankedCause) -> bool:
    """Tells whether a launcher lost the rendezvous as it watched over workers that had started."""
    return any(
        lost.quote.source == line.source and 0 < line.line - lost.quote.line <= TRACEBACK
        for lost in told.of("agent_lost")
        for line in start.cause.quotes[:1]
    )
