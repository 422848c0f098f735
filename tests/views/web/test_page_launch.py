"""Launch files on the page: dropped, chosen or pasted; shown with their places, or asked about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import FileChooser, FilePayload

from serried import frameworks
from serried.frameworks import Sizes
from tests.launch.test_files import TEXTS
from tests.page import Open
from tests.views.web.test_page_screens import OVERLAPS, PANELS, PIECES, RUNS_OVER, WORDS
from tests.views.web.workbench import Workbench

COMMAND = "torchrun --nnodes {} --nproc_per_node 8 x.py --tensor-model-parallel-size 4"
SCRIPT = f"{COMMAND.format(2)} \\\n  --pipeline-model-parallel-size 2\n"
OPEN = COMMAND.format("$NODES")
DRAG = """([files, kinds]) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) carried.items.add(new File([text], name));
  const told = { bubbles: true, cancelable: true, dataTransfer: carried };
  for (const kind of kinds) document.getElementById("map").dispatchEvent(new DragEvent(kind, told));
}"""


def drag(workbench: Workbench, *kinds: str, **files: str) -> None:
    """Moves files over the map; ``run_sh`` is the name run.sh."""
    named = [[name.replace("_", "."), text] for name, text in files.items()]
    workbench.page.evaluate(DRAG, [named, kinds])
    workbench.settle()


def drop(workbench: Workbench, **files: str) -> None:
    drag(workbench, "dragenter", "dragover", "drop", **files)


def rows(workbench: Workbench) -> dict[str, str]:
    """Returns the places that the list shows, by name and value."""
    lines = workbench.page.locator("#sources tr").all()
    cells = [line.locator("th, td").all_inner_texts() for line in lines]
    return {f"{name} {value}": place for name, value, place in cells}


def test_a_dropped_script_fills_the_form_the_picture_and_the_address(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain)
    drop(workbench, run_sh=SCRIPT)
    assert [workbench.value(field) for field in ("world_size", "tp", "pp")] == ["16", "4", "2"]
    layout = frameworks.layout("megatron", Sizes(16, tp=4, pp=2))
    assert workbench.read("groups()")["tp"] == layout.groups("tp").lists()
    assert workbench.query() == "tp=4&pp=2&zero=0"
    shown = rows(workbench)
    assert shown["TP 4"] == "run.sh line 1, --tensor-model-parallel-size"
    assert shown["PP 2"] == "run.sh line 2, --pipeline-model-parallel-size"
    assert shown["CP 1"] == "default"
    assert "Read from run.sh" in workbench.text("#reading-title")


def test_a_drop_is_announced_while_it_hangs_over_the_page(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    drag(workbench, "dragenter", "dragover", run_sh=SCRIPT)
    assert workbench.text("#drop") == "Drop to open it"
    drag(workbench, "dragleave", run_sh=SCRIPT)
    assert not workbench.page.is_visible("#drop")
    assert workbench.query() == ""


def test_a_script_is_read_with_the_files_dropped_beside_it(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    script = "deepspeed --hostfile hosts x.py --deepspeed_config ds.json"
    drop(
        workbench,
        hosts="node1 slots=8\nnode2 slots=8\nnode3 slots=8\n",
        run_sh=script,
        ds_json='{"zero_optimization": {"stage": 3}}',
    )
    assert workbench.value("world_size") == "24"
    assert rows(workbench)["ZeRO 3"] == "ds.json line 1, zero_optimization.stage"


def test_nodes_of_a_hostfile_that_differ_are_drawn_as_they_are(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    script = "deepspeed --hostfile hosts --include node1@node2:1 x.py --deepspeed_config ds.json"
    hosts, config = "node1 slots=4\nnode2 slots=4\n", '{"zero_optimization": {"stage": 3}}'
    drop(workbench, hosts=hosts, run_sh=script, ds_json=config)
    assert workbench.value("gpus_per_node") == "4,1"
    assert "5 ranks = DATA 5, 2 nodes, of 4 and 1 GPUs" in workbench.text("#headline")


def test_a_dropped_folder_is_read_by_the_file_that_names_the_others(
    page_of: Open, plain: str, tmp_path: Path
) -> None:
    files = {"model.sh": b"TP=4\n", "core": b"\0\1", "run.sh": b". ./model.sh\n"}
    files["run.sh"] += COMMAND.format(2)[:-1].encode() + b"$TP"
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    workbench = page_of(plain)
    hand = workbench.page.context.new_cdp_session(workbench.page)
    carried = {"items": [], "files": [str(tmp_path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        hand.send("Input.dispatchDragEvent", {"type": kind, "x": 700, "y": 400, "data": carried})
    workbench.settle()
    assert rows(workbench)["TP 4"].startswith("model.sh line 1, ")


def test_a_drop_on_another_view_turns_to_the_job(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule")
    drop(workbench, run_sh=SCRIPT)
    assert workbench.page.is_visible("#reading")
    assert workbench.query() == "tp=4&pp=2&zero=0"


def test_what_a_script_says_of_its_training_is_planned_and_simulated(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "cluster=gb200")
    drop(workbench, run_sh=f"{SCRIPT.strip()} --global-batch-size 64 --num-experts 8 --fp16")
    assert rows(workbench)["Global batch 64"] == "run.sh line 2, --global-batch-size"
    workbench.click("#view-schedule")
    assert workbench.value("schedule-microbatches") == "32"
    workbench.click("#view-plan")
    told = [workbench.value(f"plan-{each}") for each in ("global_batch", "compute", "plan_more")]
    assert told == ["64", "fp16", "states=fp16-adam"]
    assumed = workbench.page.locator("#plan-form [data-note='assumed']")
    assert assumed.all_inner_texts() == ["Model", "Cluster", "Sequence"]
    workbench.fill(**{"plan-cluster": "h100"})
    assert assumed.all_inner_texts() == ["Model", "Sequence"]


def test_files_are_chosen_with_the_keyboard(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    # Choosers are caught from here on, not just from the moment that one is waited for.
    workbench.page.on("filechooser", _is_multiple)
    workbench.page.focus("#launch-open")
    workbench.press("Enter")
    workbench.page.focus("#launch-choose-files")
    with workbench.page.expect_file_chooser() as chooser:
        workbench.page.keyboard.press("Enter")
    workbench.page.remove_listener("filechooser", _is_multiple)
    chooser.value.set_files(FilePayload(name="run.sh", mimeType="", buffer=SCRIPT.encode()))
    workbench.page.wait_for_selector("#sources tr")
    workbench.settle()
    assert (workbench.value("tp"), workbench.page.is_visible("#launch")) == ("4", False)


def _is_multiple(chooser: FileChooser) -> None:
    assert chooser.is_multiple()


def test_text_is_pasted_into_the_dialog_or_anywhere(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    workbench.click("#launch-open")
    assert workbench.page.is_disabled("#launch-read")
    workbench.page.fill("#launch-text", SCRIPT)
    workbench.click("#launch-read")
    assert rows(workbench)["TP 4"].startswith("pasted text line 1")
    workbench.page.evaluate("navigator.clipboard.writeText('')")
    workbench.page.evaluate(f"navigator.clipboard.writeText({SCRIPT.replace('4', '2')!r})")
    workbench.page.evaluate("document.activeElement.blur()")
    workbench.press("Control+v")
    assert workbench.value("tp") == "2"


def test_what_is_missing_is_asked_for_by_name_and_then_shown(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    before = workbench.query()
    drop(workbench, open_sh=OPEN)
    assert "open.sh leaves something open" in workbench.text("#reading-title")
    assert workbench.text("#missing label") == "World size"
    assert "NODES on line 1 is not set in the file" in workbench.text("#missing .question span")
    assert workbench.query() == before
    assert workbench.page.evaluate("document.activeElement.name") == "world_size"
    workbench.page.keyboard.type("many")
    workbench.press("Enter")
    assert "world_size=many is not a whole number" in workbench.text("#alert b")
    assert workbench.page.get_attribute("#missing input", "aria-invalid") == "true"
    workbench.page.fill("#missing input", "32")
    workbench.press("Enter")
    assert not workbench.page.is_visible("#alert")
    assert (workbench.value("world_size"), workbench.value("tp")) == ("32", "4")
    assert rows(workbench)["World size 32"] == "option --world-size"


def test_a_framework_is_chosen_where_the_file_tells_none(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    drop(workbench, run_sh="torchrun --nnodes 2 --nproc_per_node 4 x.py")
    workbench.page.select_option("#missing select", "fsdp")
    workbench.click("#missing button")
    assert (workbench.value("framework"), workbench.value("world_size")) == ("fsdp", "8")


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [
        ("en-US", "what was given holds 2 launch files: a.sh, b.sh; give one of them"),
        pytest.param(
            "zh-CN",
            "给出的文件：其中有 2 个启动文件（a.sh、b.sh）；请给其中一个",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_the_last_good_picture_stays(
    page_of: Open, plain: str, lang: str, sentence: str
) -> None:
    workbench = page_of(plain, lang=lang)
    drop(workbench, run_sh=SCRIPT)
    good, query, shown = workbench.read("groups()"), workbench.query(), rows(workbench)
    drop(workbench, a_sh=SCRIPT, b_sh=SCRIPT)
    assert workbench.text("#alert b") == sentence
    drop(workbench, core="\0\0\0")
    assert "core" in workbench.text("#alert b")
    drop(workbench, core="x" * (1024 * 1024 + 1))
    assert "1 MB" in workbench.text("#alert b")
    assert (workbench.read("groups()"), workbench.query()) == (good, query)
    assert rows(workbench) == shown


def test_sizes_that_cannot_be_are_in_the_form_to_be_corrected(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    drop(workbench, run_sh=SCRIPT.replace("4", "3"))
    assert "tp=3 does not divide 16 ranks" in workbench.text("#alert b")
    assert workbench.page.get_attribute("#tp", "aria-invalid") == "true"
    workbench.fill(tp="4")
    assert not workbench.page.is_visible("#alert")
    assert len(workbench.read("groups()")["tp"]) == 4


def test_what_the_form_changes_is_marked_in_the_list(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    drop(workbench, run_sh=SCRIPT)
    workbench.fill(tp="2")
    assert workbench.page.locator("#sources tr.changed").all_inner_texts() == [
        "TP\t4now 2\trun.sh line 1, --tensor-model-parallel-size"
    ]
    workbench.fill(tp="4")
    assert workbench.page.locator("#sources tr.changed").count() == 0


def test_advice_on_the_job_stands_above_the_places(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, lang="zh-CN")
    drop(workbench, run_sh=SCRIPT.replace("2", "4", 1).replace("size 4", "size 16"))
    advice = "#advice .important >> nth=0"
    workbench.click(f"{advice} >> summary")
    assert "解决办法" in workbench.text(advice)
    workbench.fill(tp="4")
    assert not workbench.page.is_visible(advice)


def test_hostile_names_are_shown_as_text(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    name = "<img src=x onerror=alert(1)>"
    text = OPEN.replace("$NODES", "${N:-<b>2</b>}").replace("4", "$(<i>)")
    workbench.page.evaluate(DRAG, [[[name, text]], ["drop"]])
    workbench.settle()
    assert name in workbench.text("#reading-title") + workbench.text("#alert")
    made = "#reading img, #reading i, #reading td > b > b, #alert img"
    assert workbench.page.locator(made).count() == 0


def test_back_and_forward_bring_the_list_with_the_job_and_a_reload_keeps_only_sizes(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=tp")
    drop(workbench, run_sh=SCRIPT)
    drop(workbench, two_sh=SCRIPT.replace("4", "2"))
    workbench.page.go_back()
    workbench.settle()
    assert (workbench.value("tp"), workbench.text("#reading-title")) == ("4", "Read from run.sh")
    workbench.page.go_back()
    workbench.settle()
    assert (workbench.value("tp"), workbench.page.is_visible("#reading")) == ("2", False)
    workbench.page.go_forward()
    workbench.settle()
    assert workbench.page.is_visible("#reading")
    assert "run" not in workbench.query()
    workbench.page.reload()
    workbench.settle()
    assert (workbench.value("tp"), workbench.page.is_visible("#reading")) == ("4", False)


def test_the_list_changes_its_language_with_the_page_and_goes_when_put_away(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain)
    drop(workbench, run_sh=SCRIPT)
    workbench.click("#language")
    assert rows(workbench)["TP 4"] == "run.sh 第 1 行，--tensor-model-parallel-size"
    workbench.click("#reading-close")
    assert not workbench.page.is_visible("#reading")
    drop(workbench, run_sh=SCRIPT)
    workbench.click("#reset")
    assert (workbench.page.is_visible("#reading"), workbench.value("pp")) == (False, "4")


@pytest.mark.parametrize(
    ("lang", "scheme", "width", "height"),
    [
        pytest.param("en-US", "light", 1400, 900, marks=pytest.mark.soak),
        ("zh-CN", "dark", 1280, 720),
    ],
)
def test_nothing_runs_over_or_overlaps_while_a_file_is_shown(
    page_of: Open, traced: str, lang: str, scheme: str, width: int, height: int
) -> None:
    workbench = page_of(traced, lang=lang, scheme=scheme, width=width, height=height)
    name = "megatron_mixtral.sbatch"
    for files in ([[name, TEXTS[name]]], [["open.sh", OPEN.replace("4", "$TP")]]):
        workbench.page.evaluate(DRAG, [files, ["drop"]])
        workbench.settle()
        assert workbench.page.is_visible("#reading")
        assert workbench.page.evaluate("document.documentElement.scrollWidth") <= width
        assert workbench.page.evaluate("document.documentElement.scrollHeight") <= height
        assert workbench.page.evaluate(RUNS_OVER, f"{PANELS}, #reading, #reading-details") == []
        assert workbench.page.evaluate(RUNS_OVER, WORDS) == []
        assert workbench.page.evaluate(OVERLAPS, f"{PIECES}, #reading-close") == []
        frame = workbench.page.locator("#map-frame").bounding_box()
        assert frame and frame["height"] > 60, "the picture stays in view"
    workbench.click("#launch-open")
    assert workbench.page.evaluate(RUNS_OVER, "#launch, #launch *") == []
    workbench.click("#launch-close")
    words = workbench.text("#reading")
    assert not re.search(r"[{}]|undefined", words.replace("${", "").replace("}", ""))
