"""The gate: only names that are ours, a token where others can knock, and the headers."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from serried.errors import InputError
from serried.views.web.gate import Gate, is_loopback, new_token
from tests.views.web.served import served

TOKEN = "a-token-of-the-test"


@pytest.fixture(scope="module")
def local() -> Iterator[httpx.Client]:
    """A visitor of a server on loopback, which asks for no token."""
    with served() as address, httpx.Client(base_url=address) as visitor:
        yield visitor


@pytest.fixture
def stranger(open_server: str) -> Iterator[httpx.Client]:
    """A visitor of a server on all addresses who has no cookie yet."""
    with httpx.Client(base_url=open_server) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def open_server() -> Iterator[str]:
    with served(host="0.0.0.0", token=TOKEN) as address:
        yield address


def status(visitor: httpx.Client, host: str, path: str = "/api/traces") -> int:
    return visitor.get(path, headers={"Host": host}).status_code


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST:8765", "[::1]:8765", "a.localhost:1"]
)
def test_a_loopback_server_goes_by_loopback_names(local: httpx.Client, host: str) -> None:
    assert status(local, host) == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8765", "localhost.evil"])
def test_a_name_that_is_not_ours_is_refused_as_rebinding_would_use_one(
    local: httpx.Client, host: str
) -> None:
    answer = local.get("/", headers={"Host": host})
    assert answer.status_code == 403
    assert "does not go by that name" in answer.text


def test_a_server_on_all_addresses_goes_by_this_machine_s_name_and_its_addresses(
    stranger: httpx.Client,
) -> None:
    path = f"/?token={TOKEN}"
    assert status(stranger, socket.gethostname(), path) == 303
    assert status(stranger, "10.1.2.3:8765", path) == 303
    assert status(stranger, "evil.example", path) == 403


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/traces", "/api/layout?tp=2"])
def test_without_its_token_an_open_server_tells_nothing(stranger: httpx.Client, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "needs its token" in answer.text
    assert stranger.get(path, headers={"Authorization": "token wrong"}).status_code == 403


def test_a_token_moves_from_the_address_to_a_cookie_and_opens_everything(
    stranger: httpx.Client,
) -> None:
    answer = stranger.get(f"/?dims=dp,tp&token={TOKEN}&lang=zh")
    assert (answer.status_code, answer.headers["location"]) == (303, "?dims=dp%2Ctp&lang=zh")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert stranger.get("/?dims=dp,tp&lang=zh").status_code == 200
    assert stranger.get("/api/traces").status_code == 200


def test_a_script_may_send_the_token_as_a_header(stranger: httpx.Client) -> None:
    answer = stranger.get("/api/traces", headers={"Authorization": f"token {TOKEN}"})
    assert answer.status_code == 200


def test_a_wrong_cookie_opens_nothing(stranger: httpx.Client) -> None:
    cookie = f"serried-token-{stranger.base_url.port}=wrong"
    assert stranger.get("/", headers={"Cookie": cookie}).status_code == 403


@pytest.mark.parametrize(
    "path", ["/", "/static/app.js", "/api/traces", "/api/layout?tp=3", "/nowhere"]
)
def test_no_answer_lets_the_page_load_or_tell_anything_elsewhere(
    local: httpx.Client, path: str
) -> None:
    headers = local.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(50)}
    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 32


def test_only_loopback_addresses_need_no_token() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "localhost", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "node7", "")))


@pytest.mark.parametrize("name", ["https://hub.example.org/user/ada", "hub:8000", "", "a b"])
def test_a_proxy_is_given_by_its_host_name_alone(name: str) -> None:
    with pytest.raises(InputError, match="is no host name; give the name alone"):
        Gate("127.0.0.1", 8765, behind=(name,))
