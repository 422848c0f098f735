"""The text of a launch file: taken in only when it is text of a size that a person writes."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Self

from serried import user_file
from serried.errors import InputError
from serried.finding import said
from serried.limits import LAUNCH_BYTES, LAUNCH_LINES

LAUNCH_FILE = said("a launch file")

USUAL = "UTF-8"
MARKS = (
    (codecs.BOM_UTF8, USUAL),
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""What files begin with, and the encoding that it marks; UTF-16's mark begins UTF-32's."""

CHINESE = "GB18030"
"""What a file without a mark that is no UTF-8 is read as; GBK and GB2312 are parts of it."""


ODD = re.compile("[\ufffd\x01-\x08\x0e-\x1a]")
"""Letters that no editor writes, and those that no decoding gave."""
FORGIVEN = 3
"""So many of them, and one in a hundred beyond, are in a text that was damaged on its way."""


class FileText(str):
    """Holds the text of a file, and the encoding that it was in."""

    encoding: str

    def __new__(cls, text: str, encoding: str = USUAL) -> Self:
        """Holds ``text``, which stood in ``encoding``."""
        made = super().__new__(cls, text)
        made.encoding = encoding
        return made


def text_of(data: bytes, name: str) -> FileText:
    """Returns ``data`` as text with plain line ends; raises InputError when it is no text."""
    check_size(len(data), name)
    text, encoding = _decoded(data)
    if "\x00" in text or len(ODD.findall(text)) > FORGIVEN + len(text) // 100:
        raise InputError(
            "{file} is not text, so it is no launch file; give a script or a YAML, JSON, "
            "TOML or Python config",
            file=name,
        )
    plain = FileText(text.replace("\r\n", "\n").replace("\r", "\n"), encoding)
    check_lines(plain, name)
    return plain


def encoding_of(text: str) -> str:
    """Returns the encoding that a text stood in; UTF-8 for one that is of no file."""
    return text.encoding if isinstance(text, FileText) else USUAL


def check_lines(text: str, name: str) -> None:
    """Raises InputError when a text has more lines than any launch file."""
    if text.count("\n") >= LAUNCH_LINES.most:
        raise InputError(
            "{file} has more than {limit:,} lines, the most that serried reads of a launch file",
            file=name,
            limit=LAUNCH_LINES.most,
        )


def check_size(size_bytes: int, name: str) -> None:
    """Raises InputError when a file is larger than any launch file."""
    user_file.require_size(size_bytes, LAUNCH_BYTES.most, name, LAUNCH_FILE)


def text_at(path: Path) -> FileText:
    """Returns the text of the file at ``path``; raises InputError when it cannot be read."""
    return text_of(user_file.read_bytes(path, LAUNCH_BYTES.most, LAUNCH_FILE), path.name)


def _decoded(data: bytes) -> tuple[str, str]:
    """Returns the text and its encoding: by the mark it begins with, else UTF-8, else GB18030.

    UTF-8 with a few broken letters stays UTF-8: a text whose other letters are Chinese in it
    would read as other Chinese in GB18030.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode("utf-8-sig" if encoding == USUAL else encoding, "replace"), encoding
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(letter > "\x7f" for letter in text) - broken if broken else 0
    if broken > whole:
        try:
            return data.decode(CHINESE), CHINESE
        except UnicodeDecodeError:
            pass
    return text, USUAL
