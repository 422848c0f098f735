"""A plan as a notebook draws it: memory by place in the pipeline, and the parts of a step."""

from __future__ import annotations

from itertools import dropwhile

from serried.errors import InputError
from serried.launch.request import LayoutRequest
from serried.mesh import Layout
from serried.plan.job_plan import JobPlan
from serried.views.notebook.drawn import Drawn
from serried.views.notebook.schedule import ranks_of_places
from serried.views.plan.picture import plan_picture
from serried.views.plan.text import fit_verdict, plan_parts
from serried.views.sentences import say


def plan_drawn(plan: JobPlan, layout: Layout | None = None, lang: str = "en") -> Drawn:
    """Returns what is drawn; a bar stands for all ranks of its place in the pipeline."""
    places = max(each.pp_rank for each in plan.memory.of_ranks) + 1
    rows = ranks_of_places(layout or layout_of(plan), places)
    # The picture says what stands above the tables.
    parts = [
        *dropwhile(lambda part: isinstance(part, str), plan_parts(plan, columns=100, lang=lang))
    ]
    return Drawn(
        say(fit_verdict(plan), lang), plan_picture(plan, lang=lang).svg(), tuple(parts), rows
    )


def layout_of(plan: JobPlan) -> Layout | None:
    """Returns the layout that was planned for; None where its framework cannot make it again."""
    asked = plan.asked
    degrees = asked.degrees
    sizes = {name: getattr(degrees, name) for name in ("world_size", "tp", "pp", "cp", "ep")}
    sizes |= {"etp": degrees.etp} if degrees.etp > 1 else {}
    try:
        return LayoutRequest.of(
            sizes | {"order": asked.order or None}, framework=asked.framework
        ).layout()
    except InputError:
        return None
