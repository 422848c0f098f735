"""Documents of serried that say what was asked: the words of the page that ask for the same.

serried.plan/1      asked: model, cluster, sizes …     model=llama3-8b tp=2 … planned=1
serried.groups/1    framework, world_size, sizes       framework=megatron world_size=16 …
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from serried import user_file
from serried.diagnose.job_state.given import given_groups
from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.request import LayoutRequest
from serried.limits import GROUPS_BYTES
from serried.plan.asked import STATES
from serried.plan.catalog import cluster_named, model_names
from serried.trace.model.record import TracedJob
from serried.views.web.plan.models import resolved
from serried.views.web.trace.payload import question_of
from serried.views.web.wire.plan_words import simulated_words
from serried.views.web.wire.query import MAX_WORLD_SIZE

PAGE_WORDS = ("sequence", "micro_batch", "global_batch", "schedule")
"""Words of a plan that the page calls as its document does."""
Question = dict[str, Any]


def plan_question(path: Path) -> Question:
    """Returns the words that ask for a plan again; raises InputError for a damaged document."""
    document = _read(path, said("a plan"))
    try:
        asked = document["asked"]
        sizes = {str(axis): int(size) for axis, size in asked["sizes"].items() if axis != "chunks"}
        job = _job(asked, sizes, {"order": str(asked.get("order") or "")})
        model, cluster = str(asked["model"]["name"]), str(asked["cluster"]["name"])
        if model not in model_names():  # of a config.json or of a launch file's own sizes
            model = str(asked["model"].get("written") or model)
        told = {name: str(asked[name]) for name in PAGE_WORDS}
        told |= {"model": model, "cluster": cluster}
        zero = {"zero": str(int(asked["zero"]))}
        words = {"recompute": _recompute(asked["recompute"]), "compute": str(asked["compute"])}
        chunks = int(asked["sizes"].get("chunks", 1))
        further = " ".join(_further(asked))
        own = told["schedule"] if sizes.get("pp", 1) > 1 else ""
        simulated = simulated_words(own, chunks, int(asked.get("microbatches", 0)))
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, said("a plan"), error) from error
    resolved(told)
    cluster_named(told["cluster"])
    more = {"plan_chunks": str(chunks)} if chunks > 1 else {}
    more |= {"plan_more": further} if further else {}
    more |= simulated
    return {**job, **told, **zero, **words, **more, "planned": "1"}


def groups_question(path: Path) -> Question:
    """Returns the words that ask for the layout of groups; raises InputError for no such layout."""
    document = _read(path, said("groups"))
    try:
        if "framework" in document:
            sizes = {str(axis): int(size) for axis, size in document["sizes"].items()}
            return _job(document, sizes, document)
        given = given_groups(document, path.name)
        sizes = {axis: size for axis, size in given.axes if axis in ("tp", "pp", "dp", "cp", "ep")}
        world = {"framework": "megatron", "world_size": given.world_size}
        return _job(world, sizes, document)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, said("groups"), error) from error


def _job(asked: Mapping[str, Any], sizes: Mapping[str, int], more: Mapping[str, Any]) -> Question:
    """Returns the words of a layout, which must be one that its framework makes."""
    world = int(asked["world_size"])
    if not 0 < world <= MAX_WORLD_SIZE:
        raise ValueError(f"world_size={world}")
    framework = str(asked["framework"]).split(" ")[0]
    order = str(more.get("order") or "")
    question = question_of(TracedJob(framework, world, sizes, order, "", 0))
    told = {
        name: word for name, word in question.items() if name in ("tp", "pp", "cp", "ep", "etp")
    }
    LayoutRequest.of(
        {**{n: int(v) for n, v in told.items() if v}, "world_size": world}, framework=framework
    ).layout()
    return question


def _read(path: Path, what: Sentence) -> Mapping[str, Any]:
    try:
        document = json.loads(user_file.read_text(path, GROUPS_BYTES.most, what))
    # JSON may be nested deeper than Python recurses.
    except (ValueError, RecursionError) as error:
        raise _damaged(path, what, error) from error
    if not isinstance(document, dict):
        raise _damaged(path, what, TypeError("a list"))
    return document


def _damaged(path: Path, what: Sentence, error: Exception) -> InputError:
    return InputError(
        "{file} holds {kind}, but breaks off or is damaged: {reason}",
        file=path.name,
        kind=what,
        reason=error,
    )


def _further(asked: Mapping[str, Any]) -> Iterator[str]:
    """Yields what the page has no field of its own for, as its one field for all of it.

    >>> [*_further({"framework": "fsdp", "states": "adam-8bit", "stage_layers": [7, 9]})]
    ['states=adam-8bit', 'layers=7,9']
    """
    states = asked.get("states")
    if states and states != STATES.get(str(asked["framework"]), "fp16-adam"):
        yield f"states={states}"
    if asked.get("offload", "none") != "none":
        yield f"offload={asked['offload']}"
    if lora := asked.get("lora"):
        yield f"lora={int(lora['rank'])}:{','.join(map(str, lora['targets']))}"
    layers = [int(each) for each in asked.get("stage_layers", ())]
    if len(set(layers)) > 1:
        yield f"layers={','.join(map(str, layers))}"


def _recompute(told: Mapping[str, Any]) -> str:
    """Returns what is recomputed as the page writes it.

    >>> _recompute({"kind": "full", "layers": 4, "modules": []})
    'full:4'
    """
    kind = str(told["kind"])
    more = str(told["layers"] or "") or ",".join(map(str, told["modules"] or ()))
    return f"{kind}:{more}" if more else kind
