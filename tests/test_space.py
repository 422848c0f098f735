"""The playground as a Gradio app answers as serried does, over Gradio's own server."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SPACE = Path(__file__).parent.parent / "deploy" / "space"


def app() -> Any:
    """Returns the module of the app, which stands in no package."""
    spec = importlib.util.spec_from_file_location("space_app", SPACE / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.adapters
def test_the_playground_answers_over_gradio_s_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    from gradio_client import Client

    blocks = app().playground()
    _, address, _ = blocks.launch(prevent_thread_lock=True, quiet=True)
    try:
        client = Client(address, verbose=False)
        asked = ["megatron", 16, 2, 4, 1, 1, "dp", "en"]
        assert "<svg" in client.predict(*asked, api_name="/groups")
        refused = client.predict(*["megatron", 16, 3, *asked[3:-1], "zh"], api_name="/groups")
        assert "16" in refused and "<svg" not in refused
        assert "zb-h1" in client.predict("zb-h1", 4, 8, "en", api_name="/schedule")
    finally:
        blocks.close()


def test_a_space_of_hugging_face_finds_the_app() -> None:
    head = (SPACE / "README.md").read_text(encoding="utf-8").split("---")[1]
    settings = dict(line.split(": ", 1) for line in head.strip().splitlines())
    assert settings["sdk"] == "gradio"
    assert (SPACE / settings["app_file"]).is_file()
