"""Launch files sent to the server: through the gate, as one type only, and never kept."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.views.web.served import served
from tests.views.web.wire.test_dropped import framed

SCRIPT = b"torchrun --nnodes 2 --nproc_per_node 8 x.py --tensor-model-parallel-size 4\n"
BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served() as address, httpx.Client(base_url=address) as visitor:
        yield visitor


def test_files_come_in_and_a_description_goes_out(client: httpx.Client) -> None:
    answer = client.post("/api/launch", content=framed(("run.sh", SCRIPT)), headers=BINARY)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["schema"], told["file"], told["job"]["tp"]) == (
        "serried.launch/1",
        "run.sh",
        ["4"],
    )


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [
        ("en", "a.bin is not text, so it is no launch file; give a script or a YAML, "),
        ("zh", "a.bin 不是文本，不会是启动文件；请给一个脚本，或者 YAML、"),
    ],
)
def test_a_mistake_is_a_sentence_in_the_page_s_language(
    client: httpx.Client, lang: str, sentence: str
) -> None:
    body = framed(("a.bin", b"\0\0"))
    answer = client.post(f"/api/launch?lang={lang}", content=body, headers=BINARY)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(sentence)


def test_a_refused_answer_names_its_question(client: httpx.Client) -> None:
    body = framed(("run.sh", SCRIPT))
    answer = client.post("/api/launch?world_size=x", content=body, headers=BINARY)
    assert answer.json() == {
        "error": "world_size=x is not a whole number; one such as 16 is",
        "field": "world_size",
    }


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/json"])
def test_types_that_another_site_s_page_may_send_are_refused(
    client: httpx.Client, kind: str
) -> None:
    body = framed(("run.sh", SCRIPT))
    answer = client.post("/api/launch", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 415


def test_files_are_only_sent_never_asked_for(client: httpx.Client) -> None:
    assert client.get("/api/launch").status_code == 404


def test_the_gate_stands_before_files_too(client: httpx.Client) -> None:
    body = framed(("run.sh", SCRIPT))
    strange = BINARY | {"Host": "evil.example"}
    assert client.post("/api/launch", content=body, headers=strange).status_code == 403
    with served(host="0.0.0.0", token="secret") as address:
        url = f"{address}/api/launch"
        assert httpx.post(url, content=body, headers=BINARY).status_code == 403
        token = BINARY | {"Authorization": "token secret"}
        assert httpx.post(url, content=body, headers=token).status_code == 200
