"""Runs notebooks by one real kernel, and prints what each of them shows as JSON.

    python tests/examples/notebook_runner.py FOLDER

It is a program of its own, for a kernel's client leaves sockets to whoever collects them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def main(folder: Path) -> None:
    """Runs every notebook of a folder, in it; one kernel, for starting takes longer than cells."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))
    client.stop_channels()
    read: Any = nbformat.reads
    found: dict[str, object] = {}
    for path in sorted(folder.glob("*.ipynb")):
        notebook = read(path.read_text(encoding="utf-8"), as_version=4)
        try:
            NotebookClient(notebook, km=manager, timeout=300).execute()
        except CellExecutionError as error:
            found[path.stem] = str(error)
            continue
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        found[path.stem] = [dict(output) for cell in cells for output in cell.outputs]
    manager.shutdown_kernel(now=True)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
