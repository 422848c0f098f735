"""What ranks share, as sentences and a table for the terminal: the verdict first."""

from __future__ import annotations

from collections.abc import Sequence

from serried.errors import Listed, listed
from serried.finding import Sentence, said
from serried.mesh import Layout
from serried.mesh.sharding import STATES, Cut, Sharding, StateCuts
from serried.plan.model_states import ModelStates, WeightStates
from serried.plan.precision import Precision
from serried.units import bytes_text
from serried.views.explain.plain import wrap
from serried.views.sentences import say, tell
from serried.views.table import Table

WORDS = {
    "parameters": said("parameters"),
    "gradients": said("gradients"),
    "optimizer": said("optimizer state"),
    "near": said("near copy of the parameters"),
    "gathered": said("gathered parameters"),
}
"""States as sentences name them."""


def verdict(layout: Layout, states: ModelStates | None) -> Sentence:
    """Returns the answer in one sentence: what is shared over whom, and what a rank holds.

    >>> from serried.frameworks import Sizes, layout
    >>> from serried.plan.model_states import model_states
    >>> cut = layout("megatron", Sizes(64, zero=3))
    >>> print(verdict(cut, model_states(cut, 7_500_000_000)))
    ZeRO 3: parameters, gradients and optimizer state are sharded over dp_cp, 64 ranks; \
1.88 GB a rank instead of 120 GB
    """
    sharding = layout.sharding
    if sharding is None:
        return said(
            "{framework} lays out ranks alone: what they share is up to the program",
            framework=layout.framework,
        )
    shared = _shared(sharding)
    if states is None:
        return said("ZeRO {stage}: {shared}", stage=sharding.stage, shared=shared)
    held, whole = bytes_text(states.held.total), bytes_text(states.whole.total)
    if held == whole:
        return said(
            "ZeRO {stage}: {shared}; {held} a rank", stage=sharding.stage, shared=shared, held=held
        )
    return said(
        "ZeRO {stage}: {shared}; {held} a rank instead of {whole}",
        stage=sharding.stage,
        shared=shared,
        held=held,
        whole=whole,
    )


def _shared(sharding: Sharding) -> Sentence:
    dense = _cuts_said(sharding.dense)
    if sharding.dense.is_kept:
        dense = said("{shared} (parameters whole while a step runs)", shared=dense)
    if sharding.expert is None or sharding.expert.cut_states == sharding.dense.cut_states == ():
        return dense
    return said("{dense}; of experts, {expert}", dense=dense, expert=_cuts_said(sharding.expert))


def _cuts_said(cuts: StateCuts) -> Sentence:
    """Returns which states are shared over which ranks, those of one cut together."""
    over: dict[Cut, list[str]] = {}
    for state in cuts.cut_states:
        over.setdefault(cuts.cut(state), []).append(state)
    if not over:
        return _unshared(cuts)
    parts = [_cut_said(states, cut, cuts) for cut, states in over.items()]
    return parts[0] if len(parts) == 1 else said("{parts}", parts=listed(parts, last="and"))


def _unshared(cuts: StateCuts) -> Sentence:
    if cuts.data.ranks == 1:
        return said("nothing is sharded, for each rank trains weights of its own")
    return said(
        "nothing is sharded: {ranks:,} ranks of {kinds} hold the same",
        ranks=cuts.data.ranks,
        kinds=_kinds(cuts.data),
    )


def _cut_said(states: Sequence[str], cut: Cut, cuts: StateCuts) -> Sentence:
    named: dict[str, object] = {
        "states": listed([WORDS[state] for state in states], last="and"),
        "kinds": _kinds(cut),
        "ranks": cut.ranks,
        "copies": cuts.data.ranks // cut.ranks,
    }
    is_one = tuple(states) == ("optimizer",)
    if cuts.data.ranks == cut.ranks and is_one:
        return said("{states} is sharded over {kinds}, {ranks:,} ranks", **named)
    if cuts.data.ranks == cut.ranks:
        return said("{states} are sharded over {kinds}, {ranks:,} ranks", **named)
    if is_one:
        return said(
            "{states} is sharded over {kinds}, {ranks:,} ranks, in {copies:,} copies", **named
        )
    return said("{states} are sharded over {kinds}, {ranks:,} ranks, in {copies:,} copies", **named)


def _kinds(cut: Cut) -> str:
    return " x ".join(cut.over)


def states_table(sharding: Sharding, states: ModelStates | None, *, lang: str = "en") -> Table:
    """Returns a row per state: what a rank holds of it, over whom it is cut, how often copied."""
    rows = Table()
    rows.add_column(tell("state", lang), no_wrap=True)
    if states:
        rows.add_column(tell("a rank holds", lang), justify="right")
        rows.add_column(tell("of", lang), justify="right")
    rows.add_column(tell("cut over", lang))
    rows.add_column(tell("ranks", lang), justify="right")
    rows.add_column(tell("copies", lang), justify="right")
    rows.add_column(tell("copies joined by", lang))
    for number, cuts in enumerate(sharding.each):
        held = states.each[number] if states else None
        if held is None or held.num_parameters:
            _add_rows(rows, cuts, held, several=sharding.expert is not None, lang=lang)
    if states:
        total = (bytes_text(states.held.total), bytes_text(states.whole.total))
        rows.add_row(tell("together", lang), *total)
    return rows


def _add_rows(
    rows: Table, cuts: StateCuts, states: WeightStates | None, *, several: bool, lang: str
) -> None:
    for state in STATES:
        cut = cuts.cut(state)
        copies = cuts.data.ranks // cut.ranks
        rows.add_row(
            _label(cuts, state, several, lang),
            *_bytes(states, state),
            _kinds(cut) if cut.ranks > 1 else "–",
            f"{cut.ranks:,}",
            f"{copies:,}",
            (cuts.across or _kinds(cuts.data)) if copies > 1 else "",
        )
    if not cuts.near.is_whole:
        near = _label(cuts, "near", several, lang)
        copies = cuts.data.ranks // cuts.near.ranks
        ranks = (f"{cuts.near.ranks:,}", f"{copies:,}")
        rows.add_row(near, *_bytes(states, "near"), _kinds(cuts.near), *ranks)
    if cuts.is_kept:
        gathered = _label(cuts, "gathered", several, lang)
        rows.add_row(gathered, *_bytes(states, "gathered"), tell("in a step only", lang))


def _label(cuts: StateCuts, state: str, several: bool, lang: str) -> str:
    word = say(WORDS[state], lang)
    if not several or cuts.weights == "dense":
        return word
    return tell("experts: {state}", lang, state=word)


def _bytes(states: WeightStates | None, state: str) -> list[str]:
    """Returns what a rank holds of a state, and would if nothing were shared."""
    if states is None:
        return []
    whole = getattr(states.whole, state)
    return [bytes_text(getattr(states.held, state)), bytes_text(whole) if whole else ""]


def detail_lines(
    layout: Layout,
    states: ModelStates | None,
    precision: Precision,
    *,
    width: int,
    lang: str = "en",
) -> list[str]:
    """Returns how the framework spells it, what was reckoned with, padding and notes."""
    sharding = layout.sharding
    assert sharding is not None
    sentences = [*_details(sharding, states, precision)]
    return [line for each in sentences for line in wrap(say(each, lang), width)]


def _details(
    sharding: Sharding, states: ModelStates | None, precision: Precision
) -> list[Sentence]:
    found = [_spelled(sharding)]
    if states:
        found += [_recipe(precision), *(_parameters(each) for each in states.each)]
    if sharding.dense.is_kept:
        found.append(
            said("gathered parameters stay whole from forward to backward; between steps not")
        )
    if sharding.levels:
        found.append(said("parameters are gathered over {levels}", levels=_then(sharding.levels)))
    if sharding.padding:
        found.append(said("padding, not in these bytes: {padding}", padding=sharding.padding))
    return [*found, *sharding.notes]


def _then(levels: Sequence[str]) -> Listed:
    return listed(levels, last="and")


def _spelled(sharding: Sharding) -> Sentence:
    if not sharding.spelled:
        return said("read from {source}", source=sharding.source)
    return said(
        "written as {spelled}; read from {source}", spelled=sharding.spelled, source=sharding.source
    )


def _recipe(precision: Precision) -> Sentence:
    return said(
        "precision {name}, {total} bytes a parameter: {parameter} parameter, {gradient} gradient, "
        "{master} wide copy, {moments} moments",
        name=precision.name,
        total=precision.total_bytes,
        parameter=precision.parameter_bytes,
        gradient=precision.gradient_bytes,
        master=precision.master_bytes,
        moments=precision.moment_bytes,
    )


def _parameters(states: WeightStates) -> Sentence:
    what = said("experts") if states.cuts.weights == "expert" else said("the model")
    return said(
        "a rank's part of {what} has {count:,} parameters, which {ranks:,} ranks train",
        what=what,
        count=states.num_parameters,
        ranks=states.cuts.data.ranks,
    )
