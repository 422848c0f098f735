"""The playground as a Gradio app: process groups of a layout, and the bubble of a schedule.

python deploy/space/app.py, or a Space of Hugging Face that holds this folder.
"""

from __future__ import annotations

from html import escape

import gradio as gr

import serried
from serried import SerriedError
from serried.frameworks import FRAMEWORKS
from serried.pipeline import ENTRIES
from serried.views.notebook.values import drawn
from serried.views.sentences import say

SIZES = ("tp", "pp", "cp", "ep")
KIND_HELP = "empty: one that divides the ranks"


def groups(framework: str, world_size: float, tp: float, pp: float, cp: float, ep: float,
           kind: str, lang: str) -> str:  # fmt: skip
    """Returns the ranks of a job by node, coloured by their group of a kind, as HTML."""
    sizes = {name: int(size) for name, size in zip(SIZES, (tp, pp, cp, ep), strict=True)}
    asked = {name: size for name, size in sizes.items() if size > 1}
    try:
        layout = serried.layout(framework=framework, world_size=int(world_size), **asked)
        return drawn(layout, kind=kind.strip(), lang=lang).html()
    except SerriedError as error:
        return refused(error, lang)


def schedule(name: str, stages: float, microbatches: float, lang: str) -> str:
    """Returns a simulated schedule with its bubble, as HTML."""
    try:
        found = serried.schedule(name, stages=int(stages), microbatches=int(microbatches))
        return drawn(found, lang=lang).html()
    except SerriedError as error:
        return refused(error, lang)


def refused(error: SerriedError, lang: str) -> str:
    """Returns the sentence that says what cannot be, and what could."""
    return f'<p role="alert">{escape(say(error, lang))}</p>'


def playground() -> gr.Blocks:
    """Returns the playground, which stands alone or within another Gradio app."""
    with gr.Blocks(title="serried") as app:
        lang = gr.Radio(["en", "zh"], value="en", label="Language 语言")
        with gr.Tab("Process groups 进程组"):
            with gr.Row():
                framework = gr.Dropdown(sorted(FRAMEWORKS), value="megatron", label="framework")
                world = gr.Number(16, precision=0, minimum=1, label="world size")
                sizes = [
                    gr.Number({"tp": 2, "pp": 4}.get(name, 1), precision=0, minimum=1, label=name)
                    for name in SIZES
                ]
                kind = gr.Textbox("dp", label="group kind", info=KIND_HELP)
            _drawn(groups, [framework, world, *sizes, kind, lang], app)
        with gr.Tab("Schedules 调度"):
            with gr.Row():
                name = gr.Dropdown(sorted(ENTRIES), value="1f1b", label="schedule")
                stages = gr.Number(4, precision=0, minimum=1, label="stages")
                microbatches = gr.Number(8, precision=0, minimum=1, label="microbatches")
            _drawn(schedule, [name, stages, microbatches, lang], app)
    return app


def _drawn(answer: object, inputs: list[gr.components.Component], app: gr.Blocks) -> None:
    """Adds a picture that follows its inputs."""
    picture = gr.HTML()
    events = [app.load, *(each.change for each in inputs)]  # type: ignore[attr-defined]
    gr.on(events, answer, inputs, picture)


if __name__ == "__main__":
    playground().launch()
