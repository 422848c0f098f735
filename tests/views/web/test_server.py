"""The server's answers: the page, payloads, and a user's mistake as its sentence."""

from __future__ import annotations

import queue
import re
import socket
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from serried.errors import EnvironmentProblem, InputError
from serried.trace.merge.in_memory import merge
from serried.views import mishap
from serried.views.web import questions
from serried.views.web.edition import LATER, SCRIPT, STATIC
from serried.views.web.joined import joined_modules
from serried.views.web.layout import launch
from serried.views.web.server import listen, serve
from serried.views.web.tightened import tightened
from serried.views.web.trace.payload import NamedTrace
from tests.trace.recorded_run import Run
from tests.views.web.reader import read
from tests.views.web.served import served

RUN = Run(pp=2, num_microbatches=3)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("runs")
    traces = [NamedTrace(name, merge([RUN.write(folder / name)])) for name in ("first", "second")]
    with served(traces) as address, httpx.Client(base_url=address) as visitor:
        yield visitor


def test_the_page_and_all_that_it_names_are_there(client: httpx.Client) -> None:
    page = client.get("/").text
    named = [path for path in re.findall(r'(?:src|href)="([^"]+)"', page) if path[:5] != "data:"]
    assert named
    assert not any(":" in path or path.startswith("/") for path in named), "addresses are relative"
    for path in named:
        assert client.get(f"/{path}").status_code == 200


def test_every_module_imports_only_modules_that_are_there_and_relative() -> None:
    for module in STATIC.rglob("*.js"):
        for path in re.findall(r'from "([^"]+)"', module.read_text(encoding="utf-8")):
            assert path.startswith("."), f"{module}: {path}"
            assert (module.parent / path).is_file(), f"{module}: {path}"


def test_the_page_asks_for_one_module_and_one_style_sheet_and_keeps_both(
    client: httpx.Client,
) -> None:
    named = re.findall(r'(?:src|href)="(static/app\.[^"]+)"', client.get("/").text)
    assert [re.sub(r"\?v=[0-9a-f]{12}$", "", path) for path in named] == [
        "static/app.css",
        "static/app.js",
    ]
    for path in named:
        assert "immutable" in client.get(f"/{path}").headers["cache-control"]
    assert client.get("/").headers["cache-control"] == "no-cache"


def test_every_module_and_style_is_in_what_the_page_asks_for(client: httpx.Client) -> None:
    texts = {
        path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8")
        for path in STATIC.rglob("*.js")
    }
    joined = joined_modules(texts, SCRIPT)
    for name, text in joined.items():
        sent = re.sub(r"\?v=[0-9a-f]{12}", "", client.get(f"/static/{name}").text)
        assert sent == tightened(text)
    only_types = {"collective/scenery.js", "map/picture.js"}
    found = re.findall(r"^// (.+\.js)$", "".join(joined.values()), re.M)
    assert sorted(found) == sorted(texts.keys() - only_types), "each module is sent once"
    style = client.get("/static/app.css").text
    for path in STATIC.glob("style/*.css"):
        assert re.findall(r"^\S.*\{$", path.read_text(encoding="utf-8"), re.M)[-1] in style


def test_nothing_that_is_served_names_another_site() -> None:
    for path in STATIC.rglob("*.*"):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(https?:)?//[a-z0-9-]+\.[a-z]", text), path.name


def test_a_layout_comes_as_a_payload(client: httpx.Client) -> None:
    answer = client.get("/api/layout?world_size=16&tp=2&pp=4&dims=tp")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert read(answer.content).lists(0)[:2] == [[0, 1], [2, 3]]


def test_answers_are_compressed_for_a_browser(client: httpx.Client) -> None:
    answer = client.get("/api/layout?world_size=1024&dims=dp", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [
        ("en", "tp=3 does not divide 16 ranks; sizes that do: 1, 2, 4, 8, 16"),
        ("zh", "tp=3 不能整除 16 个 rank；可用的取值：1、2、4、8、16"),
    ],
)
def test_a_wrong_size_is_a_sentence_in_the_page_s_language(
    client: httpx.Client, lang: str, sentence: str
) -> None:
    answer = client.get(f"/api/layout?world_size=16&tp=3&dims=tp&lang={lang}")
    assert answer.status_code == 400
    assert answer.json() == {"error": sentence, "field": "tp"}


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("layout?world_size=16&framework=nemo", "framework 'nemo' is not known; those that are: "),
        ("layout?world_size=16&order=tp-tp-dp", "order 'tp-tp-dp' names tp twice"),
        ("layout?world_size=16&order=tp-xp", "order 'tp-xp' names an unknown axis 'xp'"),
        ("layout?world_size=0", "world size 0 cannot be"),
        ("layout?world_size=16&kind=nettest", "megatron makes no group kind 'nettest' here"),
        ("layout?world_size=16&lang=fr", "language 'fr' is not known; those that are: en, zh"),
        ("rank?world_size=16&rank=16", "rank 16 is outside the world; ranks run from 0 to 15"),
        ("rank?world_size=16&rank=-1", "rank -1 is outside the world; ranks run from 0 to 15"),
        ("trace?trace=2", "there is no trace 2 here; 2 are open, numbered from 0"),
        ("trace?trace=x", "there is no trace x here; 2 are open, numbered from 0"),
    ],
)
def test_a_question_that_cannot_be_gets_its_sentence(
    client: httpx.Client, question: str, sentence: str
) -> None:
    answer = client.get(f"/api/{question}")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(sentence)


def test_a_rank_comes_as_a_document(client: httpx.Client) -> None:
    answer = client.get("/api/rank?world_size=16&tp=2&pp=4&rank=5").json()
    assert (answer["rank"], answer["groups"]["pp"]) == (5, [[1, 5, 9, 13]])


def test_traces_are_offered_by_name_and_sent_by_number(client: httpx.Client) -> None:
    assert [each["name"] for each in client.get("/api/traces").json()["traces"]] == [
        "first",
        "second",
    ]
    message = read(client.get("/api/trace?trace=1").content)
    assert (message.header["name"], len(message.columns["rank"])) == ("second", len(RUN.spans()))


def test_the_page_without_data_is_small(client: httpx.Client) -> None:
    paths = re.findall(r'(?:src|href)="((?!data:|api/)[^"]+)"', client.get("/").text)
    assert len(paths) == 2
    for lang in ("en", "zh"):
        asked = ["", *paths, f"api/words?lang={lang}"]
        assert sum(_compressed_bytes(client, path) for path in asked) < 150_000


@pytest.mark.parametrize("tab", LATER)
def test_the_page_names_the_module_of_the_tab_that_its_address_opens(
    client: httpx.Client, tab: str
) -> None:
    (named,) = re.findall(r'rel="modulepreload" href="([^"]+)"', client.get(f"/?view={tab}").text)
    assert named.startswith(f"static/{LATER[tab]}?v=")
    answer = client.get(f"/{named}")
    assert "immutable" in answer.headers["cache-control"]
    assert f'"./{named.removeprefix("static/")}"' in client.get("/static/app.js").text


def test_a_page_that_opens_another_tab_fetches_no_module_for_it(client: httpx.Client) -> None:
    for address in ("/", "/?view=layout", "/?view=nonsense"):
        assert "modulepreload" not in client.get(address).text


def test_a_page_that_a_browser_has_is_not_sent_again(client: httpx.Client) -> None:
    first = client.get("/")
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("query", "accepted", "lang"),
    [("", "zh-CN,zh;q=0.9", "zh"), ("?lang=en", "zh", "en"), ("?lang=xx", "fr", "en")],
)
def test_the_page_names_what_it_asks_first_in_the_visitor_s_language(
    client: httpx.Client, query: str, accepted: str, lang: str
) -> None:
    page = client.get(f"/{query}", headers={"Accept-Language": accepted}).text
    (first,) = re.findall(r'rel="preload" as="fetch" crossorigin href="([^"]+)"', page)
    answer = client.get(f"/{first}").json()
    assert set(answer) == {
        *(f"words?lang={lang}", f"page?lang={lang}"),
        *("cases", "traces", "checks", "openings"),
    }


def _compressed_bytes(client: httpx.Client, path: str) -> int:
    answer = client.get(f"/{path}", headers={"Accept-Encoding": "gzip"})
    return int(answer.headers["content-length"])


def test_a_port_in_use_names_one_that_is_free() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentProblem) as caught:
            listen("127.0.0.1", port)
        sentence = str(caught.value)
        found = re.fullmatch(rf"port {port} is in use; (\d+) is free: add --port \1", sentence)
        assert found
        listen("127.0.0.1", int(found[1])).close()


def test_a_host_that_is_not_this_machine_s_is_refused() -> None:
    for host in ("192.0.2.1", "no-such-host.invalid"):
        with pytest.raises(EnvironmentProblem, match=f"{host} is not an address of this machine"):
            listen(host, 0)


def test_a_port_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="port 70000 cannot be; ports run from 0 to 65535"):
        listen("127.0.0.1", 70000)


def test_a_reserved_port_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(self: socket.socket, address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", forbid)
    with pytest.raises(EnvironmentProblem, match="port 80 is reserved for the system"):
        listen("127.0.0.1", 80)


def test_an_address_of_version_six_is_listened_on() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        listening = listen("::1", 0)
    except EnvironmentProblem:
        pytest.skip("this machine has no ::1")
    listening.close()


def interrupt(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()
    raise KeyboardInterrupt


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[str]:
    """Lets ``serve`` run no server, and collects what it would open in a browser."""
    addresses: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(uvicorn.Server, "run", interrupt)
    monkeypatch.setattr(webbrowser, "open", addresses.put)
    return addresses


def test_a_browser_opens_on_the_state_asked_for(
    opened: queue.Queue[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    serve({}, port=0, query="dims=dp,tp")
    address = opened.get(timeout=30)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?dims=dp,tp", address)
    printed = capsys.readouterr()
    assert printed.out == f"serried workbench: {address}\n"
    assert printed.err.endswith("stopped\n")


def test_without_a_screen_no_browser_opens_and_over_ssh_the_tunnel_is_told(
    opened: queue.Queue[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    serve({}, port=0)
    assert opened.empty()
    assert re.search(r"ssh -L (\d+):localhost:\1 ", capsys.readouterr().err)


def test_on_all_addresses_the_printed_one_names_this_machine(
    opened: queue.Queue[str], capsys: pytest.CaptureFixture[str]
) -> None:
    serve({}, host="0.0.0.0", port=0, open_browser=False, token="t", query="lang=zh")
    printed = capsys.readouterr().out
    host = re.escape(socket.gethostname())
    assert re.fullmatch(rf"serried workbench: http://{host}:\d+/\?token=t&lang=zh\n", printed)


def test_what_nobody_foresaw_is_a_sentence_of_the_page_and_the_server_goes_on(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("stage")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(mishap, "_files", {})
    monkeypatch.setattr(questions, "rank_answer", fail)
    monkeypatch.setattr(launch, "launch_answer", fail)
    head = b'{"files": []}'
    body = len(head).to_bytes(4, "little") + head
    kind = {"content-type": "application/octet-stream"}
    told = [
        client.get("/api/rank?world_size=8&rank=0&lang=en"),
        client.get("/api/rank?world_size=8&rank=0&lang=zh"),
        client.post("/api/launch?lang=en", content=body, headers=kind),
    ]
    assert [each.status_code for each in told] == [500, 500, 500]
    english, chinese, dropped = (each.json()["error"] for each in told)
    assert "a mistake in serried, not in what was asked (KeyError: 'stage')" in english
    assert "这是 serried 自己的错" in chinese
    assert dropped.startswith("this is a mistake in serried")
    assert len(list(tmp_path.iterdir())) == 1, "one file for one place"
    assert client.get("/api/page").status_code == 200
