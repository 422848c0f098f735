"""What launch files say of the model and its training, as words of the page's Plan and Schedule.

    train.sh ─> LaunchConfig ─┬─> model, sequence, batches, recomputation …  the Plan tab
                              ├─> states, lora, settings, in one word        ── plan_more
                              └─> schedule, microbatches, chunks             the Schedule tab

They are those that ``serried plan FILE`` takes, so that both speak of the same step. What a file
does not say is in none of them, and the page keeps what it assumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from serried.errors import InputError, Listed, listed
from serried.finding import Sentence, said
from serried.launch.facts.config import LaunchConfig
from serried.launch.facts.found import Found
from serried.mesh import Layout
from serried.number import whole_number
from serried.plan.asked import SWITCHES, WHAT
from serried.plan.catalog import model_named, model_names
from serried.plan.degrees import Degrees
from serried.plan.launched import NEEDED as NEEDED_SIZES
from serried.plan.launched import model_of, options_of, words_of
from serried.plan.model.shape import ModelShape
from serried.plan.model.written import is_written, text_of
from serried.plan.training_settings import SETTINGS
from serried.views.layout.sources import SizeSource
from serried.views.sentences import say
from serried.views.web.wire.plan_words import FIELDS, MORE, PLANNED, simulated_words

PLACES: Mapping[str, tuple[str, ...]] = {
    "sequence": ("sequence",),
    "micro_batch": ("micro_batch",),
    "global_batch": ("global_batch",),
    "recompute": ("granularity", "checkpoint_mode", "recompute_activations", "checkpointing"),
    "compute": ("fp8", "fp16", "precision"),
    "schedule": ("schedule",),
}
"""What of a file tells a word, the first that stands in it."""
NEEDED = ("model", "sequence", "global_batch")
"""Words without which nothing is planned, and that a file may say."""


def training_of(
    config: LaunchConfig, layout: Layout, *, reads_folders: bool
) -> tuple[dict[str, str], list[InputError]]:
    """Returns words of a page's address that a file says, and what of them cannot be read.

    ``reads_folders`` lets a model's folder on this machine tell its shape.
    """
    try:
        degrees = Degrees.of(layout)
        told = words_of(config, degrees.dp, degrees.pp)
    except InputError as error:
        return {}, [error]
    faults = []
    try:
        shape = model_of(config, reads_folders=reads_folders)
    except InputError as error:
        shape, faults = None, [error]
    named = {"model": _model_word(shape)} if shape else {}
    plain = {name: told[name] for name in FIELDS if name in told and name != "chunks"}
    chunks = {"plan_chunks": told["chunks"]} if told.get("chunks", "1") != "1" else {}
    more = " ".join(_more(told, config))
    found = {**named, **plain, **chunks, **({"plan_more": more} if more else {})}
    if not found:
        return {}, faults
    assumed_words = {"plan_assumed": ",".join(_open_words(found))}
    return {**found, **_simulated(told, degrees), **assumed_words}, faults


def training_sources(
    config: LaunchConfig, training: Mapping[str, str], lang: str
) -> list[SizeSource]:
    """Returns where a file says each word of the Plan tab."""
    return [
        SizeSource(name, _shown(name, text), say(where, lang))
        for name, text in training.items()
        if (where := _where(name, text, config)) is not None
    ]


def assumed(config: LaunchConfig, training: Mapping[str, str]) -> Sentence:
    """Says what a plan needs that no file says, or this one does not."""
    return said(
        "{file} does not say the {what}; the Plan tab shows what is assumed",
        file=config.file,
        what=listed([WHAT[name] for name in _open_words(training)], last="and"),
    )


def _open_words(found: Mapping[str, str]) -> list[str]:
    return ["cluster", *(name for name in NEEDED if name not in found)]


# ----------------------------------------------------------------------- words


def _model_word(shape: ModelShape) -> str:
    """Returns a catalogued model's name; one of a file's own sizes is written out."""
    if shape.name in model_names() and model_named(shape.name) == shape:
        return shape.name
    # An address holds nothing of a file that nobody typed, not even the file's name.
    return text_of(replace(shape, name=f"{shape.layers}x{shape.hidden}"))


def _more(told: Mapping[str, str], config: LaunchConfig) -> Iterator[str]:
    """Yields what the Plan tab has no field of its own for, as its one field for all of it."""
    settings = {each.option: name for name, each in SETTINGS.items()}
    options = {settings.get(name, name): text for name, text in options_of(config).items()}
    words = {each: told[each] for each in MORE if each in told}
    if SWITCHES.get(words.get("sequence_parallel", "")):  # as a plan takes it anyhow
        del words["sequence_parallel"]
    for name, text in {**words, **options}.items():
        yield f"{name}={''.join(text.split())}"


def _simulated(told: Mapping[str, str], degrees: Degrees) -> dict[str, str]:
    """Returns the step of the Schedule tab: its microbatches, and its schedule before others."""
    step, chunks = {**PLANNED, **told}, told.get("chunks", "1")
    replicas = degrees.dp * whole_number(step["micro_batch"], "micro_batch")
    batch = whole_number(step["global_batch"], "global_batch")
    # A batch that replicas do not divide is refused by the plan, which says so.
    microbatches = 0 if batch % replicas else batch // replicas
    own = told.get("schedule") or ("1f1b" if chunks == "1" else "interleaved-1f1b")
    return simulated_words(
        own if degrees.pp > 1 else "", whole_number(chunks, "chunks"), microbatches
    )


# ----------------------------------------------------------------------- places


def _where(name: str, text: str, config: LaunchConfig) -> Sentence | Listed | None:
    """Returns where a file says a word; None for words that follow from others."""
    told = config.training
    if name == "model":
        return listed(each.where for each in _model_places(told, text))
    if name == "global_batch" and name not in told:
        parts = [told[each] for each in ("micro_batch", "accumulation") if each in told]
        return said(
            "{where}, times the replicas", where=Found(0, config.file, parts=tuple(parts)).where
        )
    if name == "plan_more":
        return listed([config.file])
    found = next((told[each] for each in PLACES.get(name, ()) if each in told), None)
    return found.where if found else None


def _model_places(told: Mapping[str, Found], text: str) -> list[Found]:
    ways = [("kind", "flavor"), ("model",)]
    # A file may name a model that nobody knows, and its sizes as well.
    ways.insert(0 if is_written(text) else 2, NEEDED_SIZES)
    names = next((way for way in ways if all(name in told for name in way)), ())
    return [told[name] for name in names]


def _shown(name: str, text: str) -> str:
    """Returns a word as a table of places shows it: of a model written out, its sizes alone."""
    if name == "model" and is_written(text):
        return ", ".join(text.rpartition(":")[2].split(",")[:3])
    return text
