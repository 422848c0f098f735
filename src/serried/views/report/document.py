"""The report as one HTML file: the page's document, module, styles and answers, asking for nothing.

Its policy lets nothing be fetched from anywhere, and nothing run but the page's module and the few
lines that unpack it, whose hashes it names: a report whose module was altered does not run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import re
from urllib.parse import urlencode

from serried.finding import said
from serried.views.report.archive import packed
from serried.views.report.keeping import ReportContent
from serried.views.sentences import say
from serried.views.web.edition import page_style, whole_document, whole_script

ABSENT = said("this report does not hold that answer; serried serve, on the files, gives it")
OLD_BROWSER = said("this browser cannot unpack the report; one of 2023 or newer can")
UNPACKING = """\
(async () => {
  const held = document.getElementById("module");
  if (!window.DecompressionStream) {
    document.body.textContent = held.dataset.old;
    return;
  }
  const packed = Uint8Array.from(atob(held.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = await new Response(stream).text();
  document.body.append(script);
})();
"""
"""Runs the page's module, which is packed: it is most of a small report."""


def report_document(content: ReportContent, title: str, lang: str) -> str:
    """Returns the document of a report; ``title`` stands in the window's bar."""
    script = whole_script()
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, UNPACKING)}" />'
        f"<style>{page_style()}</style>"
    )
    start = html.escape(_start(content))
    kept = packed(content.answers, say(ABSENT, lang))
    module = base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode()
    old = html.escape(say(OLD_BROWSER, lang))
    tail = (
        f'<script type="text/plain" id="kept" data-start="{start}">{kept}</script>'
        f'<script type="text/plain" id="module" data-old="{old}">{module}</script>'
        f"<script>{UNPACKING}</script>"
    )
    text = re.sub(
        r'\s*<link rel="stylesheet"[^>]*>|\s*<script[^>]*></script>', "", whole_document()
    )
    text = re.sub(r"<title>.*?</title>", lambda _: f"<title>{html.escape(title)}</title>", text)
    text = text.replace('<html lang="en">', f'<html lang="{lang}" data-report="">')
    # A policy counts for what stands behind it.
    text = text.replace('<meta charset="utf-8" />', f'<meta charset="utf-8" />{head}', 1)
    return text.replace("</body>", f"{tail}</body>", 1)


def _policy(*scripts: str) -> str:
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    marks = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {marks}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _start(content: ReportContent) -> str:
    """Returns the words of the address that the report opens with."""
    pairs = [(name, line) for name, value in content.state.items() for line in value.split("\n")]
    return urlencode(pairs)
