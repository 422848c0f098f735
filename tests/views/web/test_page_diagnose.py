"""The page shows a diagnosis: the verdict, the culprits on the map, the evidence a click away."""

from __future__ import annotations

from pathlib import Path

from serried.views.web.diagnose.cases import read_case
from tests.page import Open
from tests.views.web.diagnose.test_cases import KILLED
from tests.views.web.served import served


def test_a_page_of_evidence_alone_opens_on_its_diagnosis(page_of: Open, tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(KILLED)
    with served(cases=[read_case(tmp_path / "console.log")]) as address:
        workbench = page_of(address)
        told = workbench.read("diagnosis()")
        assert "signal 9" in told["verdict"]
        assert "rank 5" in told["verdict"]
        assert told["states"][5] == 3
        workbench.click("#diagnose-quotes")
        assert "console.log:1" in workbench.text("#diagnose-evidence")
        workbench.click("#diagnose-chain button.rank")
        workbench.page.wait_for_url("**rank=5*")
        assert "信号 9" in page_of(address, "lang=zh").text("#diagnose-verdict")
        workbench.click("#view-layout")
        assert workbench.read("diagnosis()") is None
