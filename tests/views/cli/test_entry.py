"""Ctrl+C while Python still loads the command line."""

from __future__ import annotations

import subprocess
import sys

PRESSED = """
import sys

class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from serried.views.cli.entry import main
main()
"""


def test_ctrl_c_while_python_loads_the_command_line_is_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_entry_loads_nothing_of_its_own_before() -> None:
    code = "import sys, serried.views.cli.entry; print('click' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
