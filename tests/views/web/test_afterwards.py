"""The server answers before it does anything that takes long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from serried.views.web.afterwards import Afterwards, AnswersFirst
from serried.views.web.gate import Gate
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.server import application


def test_work_begins_behind_the_first_answer_and_once() -> None:
    told: list[str] = []
    afterwards = Afterwards()
    afterwards.add(lambda: told.append("work"))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("hello")(scope, receive, send)
        told.append("answer")

    client = TestClient(AnswersFirst(app, afterwards))
    assert client.get("/").text == "hello"
    client.get("/")
    assert told == ["answer", "work", "answer"]
    afterwards.add(lambda: told.append("late"))
    assert told[-1] == "late", "what comes later waits for nothing"


def test_a_held_desk_reads_behind_the_first_answer(tmp_path: Path) -> None:
    script = tmp_path / "hosts"
    script.write_text("node1 slots=8\nnode2 slots=8\n")
    desk = OpeningDesk(held=True)
    try:
        opening = desk.open(script)
        app = application(desk, Gate("127.0.0.1", 8765), Afterwards())
        assert (opening.state, opening.kind) == ("reading", None)
        assert TestClient(app, base_url="http://127.0.0.1:8765").get("/").status_code == 200
        assert desk.settle(60)
        assert opening.state == "done"
    finally:
        desk.close()


def test_a_server_that_hands_a_file_to_a_process_imports_no_reader() -> None:
    code = (
        "import sys, serried.views.web.server, serried.views.web.opening.apart, "
        "serried.views.web.opening.prepared\n"
        "print([name for name in sys.modules if name.startswith('serried.') and "
        "name.split('.')[1] in ('diagnose', 'plan', 'pipeline')])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
