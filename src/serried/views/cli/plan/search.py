"""``serried search``: the best layouts of a model on a cluster, and why the others lose."""

from __future__ import annotations

from typing import Any

import click

from serried.errors import InputError, listed
from serried.launch.request import LayoutRequest
from serried.mesh.sizes import read_settings
from serried.number import whole_number
from serried.plan.asked import option_of, plan_request
from serried.plan.rank_order import inner_axis, orders_of
from serried.plan.request import PlanRequest
from serried.plan.search.search import search as searched
from serried.plan.search.space import SearchSpace
from serried.views.cli.count import COUNT
from serried.views.cli.language import current_language, lang_option
from serried.views.cli.options import size_options
from serried.views.cli.output import OutputChoice, as_json, form_option, output_option, width
from serried.views.cli.plan.options import plan_constants, plan_options, plan_words
from serried.views.explain.plain import wrap
from serried.views.plan.search_text import (
    miss_table,
    pareto_table,
    search_document,
    search_table,
    search_verdict,
)
from serried.views.sentences import tell

ENDINGS = ("table", "json", "svg", "png")
FIXED = ("tp", "pp", "cp", "dp", "ep", "etp")
UNSEEN = (
    *("zero1_size", "nettest_size", "gpus_per_node", "gpus_per_rank"),
    *("layers_first", "layers_last", "layers_picture", "account_for"),
)
"""Options of a plan that no search looks at."""


@click.command()
@plan_options
@size_options
@click.option("--chunks", type=COUNT, help="Model chunks on each rank, where only these are meant.")
@click.option(
    "--most", type=COUNT, default=10, show_default=True, help="How many layouts are shown."
)
@click.option(
    "--pareto", is_flag=True, help="Show the layouts that none beats in both time and memory."
)
@lang_option
@form_option(ENDINGS)
@output_option
def search(most: int, *, pareto: bool, **options: Any) -> int:
    """Finds the best layouts of a model on a cluster, and says why the others lose.

    Every layout that the rules allow is weighed: degrees, schedule, chunks, microbatch, ZeRO
    stage, recomputation, and where a framework lets one choose, whether replicas or stages lie
    within a node. A size or setting that is given is kept. Exits with 1 where none fits.

    \b
    serried search --model llama3-70b --cluster h100 --world-size 256 --sequence 8192 \\
        --global-batch 512
    serried search --model ./config.json --cluster gb200 --world-size 64 --sequence 4096 \\
        --global-batch 256 --compute mxfp8 --tp 4 -o search.svg
    """
    output = OutputChoice.of(options, ENDINGS)
    form = output.form_among(ENDINGS)
    _at_least_one("most", most)
    asked, space = _asked(options)
    found = searched(asked, space, most=most, constants=plan_constants(options), progress=_tell)
    if form == "json":
        output.write(as_json(search_document(found, lang=output.lang, only_front=pareto)))
    elif form in ("svg", "png"):
        from serried.views.plan.search_picture import search_picture

        if form == "png" and output.path is None:
            raise InputError("a PNG goes into a file; give one, such as -o search.png")
        # The letters of a PNG are drawn without a font, and have no Chinese.
        lang = "en" if form == "png" else output.lang
        drawing = search_picture(found, lang=lang, only_front=pareto)
        output.write(drawing.svg() if form == "svg" else drawing.png())
    else:
        lang = output.lang
        made = pareto_table if pareto and found.best else search_table
        rows = made(found, lang=lang) if found.best else miss_table(found, lang=lang)
        verdict = [
            line for text in search_verdict(found, lang=lang) for line in wrap(text, width())
        ]
        output.show(*verdict, "", rows)
    return 0 if found.best else 1


def _asked(options: dict[str, Any]) -> tuple[PlanRequest, SearchSpace]:
    """Returns what is searched for, and what of it is fixed."""
    _require_seen(options)
    words, world = plan_words(options), _world(options)
    # The degrees are what is searched: the request begins on one rank, and each layout has its own.
    alone = LayoutRequest.of(
        {"world_size": 1, "zero": options.get("zero")},
        framework=options["framework"],
        settings=read_settings(options["settings"]),
    )
    fixed = {
        name: (_at_least_one(name, options[name]),)
        for name in FIXED
        if options.get(name) is not None
    }
    schedule, recompute = words.pop("schedule", None), words.get("recompute")
    chunks, micro = words.pop("chunks", None), words.pop("micro_batch", None)
    asked = plan_request(alone, words)
    _require_effect(asked, fixed)
    told: dict[str, Any] = {**fixed}
    if options.get("order"):
        told["orders"] = (_order(asked, options["order"]),)
    if schedule:
        told["schedules"] = (schedule,)
    if recompute:
        told["recomputes"] = (asked.recompute.kind,)
    if options.get("zero") is not None:
        told["zeros"] = (options["zero"],)
    if words.get("offload"):
        told["offloads"] = (asked.offload,)
    if chunks:
        told["chunks"] = (_at_least_one("chunks", whole_number(chunks, "chunks")),)
    if micro:
        told["micro_batch"] = (_at_least_one("micro_batch", whole_number(micro, "micro_batch")),)
    return asked, SearchSpace(world, **told)


def _order(asked: PlanRequest, order: str) -> str:
    """Returns an order of axes that is asked for; raises InputError where it says nothing here."""
    if not inner_axis(order):
        raise InputError(
            "the order '{order}' does not say whether dp or pp is nearer; one such as {known} does",
            order=order[:60],
            known=listed(orders_of(asked.framework) or ("tp-cp-ep-dp-pp",), last="or"),
        )
    return order


def _require_seen(options: dict[str, Any]) -> None:
    """Raises InputError for an option that would do nothing."""
    for name in UNSEEN:
        if options.get(name) is not None:
            raise InputError(
                "a search does not look at {option}; leave it out here, and give it to serried "
                "plan with the layout that is found",
                option=option_of(name),
            )


def _require_effect(asked: PlanRequest, fixed: dict[str, tuple[int]]) -> None:
    """Raises InputError for sizes of experts without experts, and for a count of layers."""
    for name in ("ep", "etp"):
        if name in fixed and asked.model.experts is None:
            raise InputError(
                "{model} has no experts, so that {option} would do nothing; leave it out",
                model=asked.model.name,
                option=option_of(name),
            )
    if asked.recompute.layers is not None:
        raise InputError(
            "a search recomputes all layers or none, not {layers} of a stage; give --recompute "
            "full, or plan one layout with serried plan",
            layers=asked.recompute.layers,
        )


def _at_least_one(name: str, value: int) -> int:
    """Returns a size that can be; raises InputError for one below 1."""
    if value < 1:
        raise InputError("{name}={value}; it is at least 1", name=name, value=value)
    return value


def _world(options: dict[str, Any]) -> int:
    told = options.get("world_size")
    if not told or len(told) > 1:
        raise InputError("the number of GPUs is missing; give it, such as --world-size 64")
    return int(told[0])


def _tell(done: int, of: int, weighed: int) -> None:
    """Prints on stderr how far a long search is, a line for each quarter."""
    if weighed > 200_000 and done % max(1, of // 4) == 0:
        text = tell("{count:,} layouts weighed", current_language(), count=weighed)
        click.echo(text, err=True)
