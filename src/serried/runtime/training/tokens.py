"""Token data: documents turned into numbers once, kept in a file, and read where they are wanted.

    documents   | The first …          | The second …      |
    tokens      | 464 717 … 50256      | 464 1218 … 50256  |     50256: the end of a document
    samples     |  seq_len  |  seq_len  |  seq_len  | …         packed: nothing is padded or cut off

Documents are packed end to end, so a tokenizer needs no token that pads. Each ends with the
tokenizer's own end (``eos_token`` of its tokenizer_config.json), where it has one; without a
tokenizer a token is a byte of UTF-8, and a document ends with a line break. The numbers are made
by the first process that needs them and kept in the user's cache folder, by what they are made of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.finding import said
from serried.limits import TOKENIZER_BYTES, TOKENIZER_CONFIG_BYTES
from serried.runtime.job.config_model import require_models
from serried.runtime.job.data_file import cache_folder
from serried.runtime.job.settings import TrainSettings
from serried.runtime.training.data import Corpus, SampleOrder
from serried.runtime.training.documents import documents
from serried.user_file import read_bytes, read_text
from serried.whole_file import whole_file

VERSION = 1
"""Counts the ways in which numbers were made; another one makes them anew."""
CONFIG = "tokenizer_config.json"
AT_ONCE = 1 << 22
"""Letters that a tokenizer is given at once, in many documents: it takes them in threads."""


@dataclass(frozen=True)
class Tokens:
    """Holds the numbers of a data file, which lie in ``file``."""

    file: Path
    dtype: str
    """``u1``, ``u2`` or ``u4``: what each number takes."""
    source: object
    """What they were made of, as the user is told of it."""
    num_tokens: int
    size: int
    """One more than the largest number that there may be."""

    @classmethod
    def of(
        cls,
        data: Path | None,
        *,
        key: str = "text",
        tokenizer: Path | None = None,
        cache: Path | None = None,
    ) -> Tokens:
        """Returns the tokens of ``data``, made now unless they lie in ``cache`` already.

        Raises InputError for data or a tokenizer that will not do, and EnvironmentProblem
        without the tokenizers package.
        """
        encoder = _encoder_of(tokenizer) if tokenizer else BYTES
        files = Corpus.of(data).files
        folder = cache or cache_folder()
        file = folder / f"{_digest(files, key, encoder)}.{encoder.dtype}"
        if not file.is_file():
            _make_folder(folder)
            _make(file, files, key, encoder)
        count = file.stat().st_size // np.dtype(encoder.dtype).itemsize
        source = data or said("the standard library")
        return cls(file, encoder.dtype, source, count, encoder.size)

    def require(self, seq_len: int, batch: int, *, held_out: int = 0) -> None:
        """Raises InputError where there are fewer samples than a batch and those held out."""
        least = (batch + held_out) * seq_len + 1
        if self.num_tokens >= least:
            return
        sequences = max(0, self.num_tokens - 1) // seq_len
        raise InputError(
            "{path} holds {found:,} tokens, which are {sequences} sequences of {seq_len}; a global "
            "batch of {batch} and {held_out} held out take {least:,} tokens; give more text, or a "
            "smaller --global-batch-size or --seq-len",
            path=self.source,
            found=self.num_tokens,
            sequences=sequences,
            seq_len=seq_len,
            batch=batch,
            held_out=held_out,
            least=least,
        )

    def order(self, *, seq_len: int, seed: int, held_out: int = 0) -> SampleOrder:
        """Returns the order of samples from all but the last ``held_out`` sequences."""
        return SampleOrder(self.num_tokens - held_out * seq_len, seq_len, seed)

    def batch(self, places: Iterable[int], length: int) -> NDArray[np.int32]:
        """Returns ``length`` tokens from each of ``places``: shape (places, length)."""
        return np.stack([self._numbers[place : place + length] for place in places]).astype("i4")

    @cached_property
    def _numbers(self) -> NDArray[Any]:
        return np.memmap(self.file, dtype=f"<{self.dtype}", mode="r")


@dataclass(frozen=True)
class TextEncoder:
    """Turns texts into numbers, by a tokenizer.json or, without one, as the bytes of UTF-8."""

    file: Path | None = None
    end: int = ord("\n")
    """The number that ends a document; -1 for none."""
    size: int = 256
    """One more than the largest number that a text can give."""
    content: bytes = b""

    @classmethod
    def of(cls, file: Path) -> TextEncoder:
        """Reads a tokenizer.json; raises InputError where it is none."""
        content = read_bytes(file, TOKENIZER_BYTES.most, said("a tokenizer"))
        loaded = _loaded(content, file)
        numbers = loaded.get_vocab(with_added_tokens=True).values()
        end = _end_of_document(file.parent / CONFIG)
        number = loaded.token_to_id(end) if end else None
        return cls(file, -1 if number is None else number, max(numbers, default=-1) + 1, content)

    @property
    def dtype(self) -> str:
        """The least type that holds every number."""
        return "u1" if self.size <= 1 << 8 else "u2" if self.size <= 1 << 16 else "u4"

    def encode(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Returns the numbers of each text, without any that a tokenizer would put around it."""
        if self.file is None:
            return [np.frombuffer(text.encode(), dtype="u1") for text in texts]
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(each.ids, dtype=f"<{self.dtype}") for each in found]

    @cached_property
    def _tokenizer(self) -> Any:
        assert self.file is not None
        return _loaded(self.content, self.file)


BYTES = TextEncoder()


def text_of(settings: TrainSettings) -> Corpus | Tokens:
    """Returns the text that a run reads: its tokens, or its files as they are.

    Raises InputError where it cannot be read, and EnvironmentProblem without what reads it.
    """
    if settings.has_tokens:
        key, tokenizer, cache = settings.text_key, settings.tokenizer, settings.token_cache
        return Tokens.of(settings.data, key=key, tokenizer=tokenizer, cache=cache)
    return Corpus.of(settings.data)


def require_text(settings: TrainSettings) -> None:
    """Raises InputError where a run's data is too short for it, or not for its model."""
    text, held_out = text_of(settings), settings.validation.held_out
    if isinstance(text, Tokens):
        text.require(settings.model.seq_len, settings.global_batch_size, held_out=held_out)
    else:
        text.require(settings.model.seq_len, settings.data, held_out=held_out)
    if text.size > settings.vocabulary and settings.tokenizer:
        raise InputError(
            "{tokenizer} has {size:,} tokens, and the model's embedding {rows:,} rows, so that "
            "some would find none; give the tokenizer that belongs to the model",
            tokenizer=settings.tokenizer,
            size=text.size,
            rows=settings.vocabulary,
        )
    if text.size > settings.vocabulary:
        raise InputError(
            "without a tokenizer text is {size} kinds of bytes, and the model's embedding has "
            "{rows} rows; give --tokenizer",
            size=text.size,
            rows=settings.vocabulary,
        )


def _encoder_of(path: Path) -> TextEncoder:
    """Returns the encoder of a tokenizer, read again only where its file has changed."""
    require_models()
    file = _tokenizer_file(path)
    stats = [each.stat() for each in (file, file.parent / CONFIG) if each.is_file()]
    return _encoder(file, tuple((found.st_mtime_ns, found.st_size) for found in stats))


@lru_cache(maxsize=4)
def _encoder(file: Path, state: tuple[tuple[int, int], ...]) -> TextEncoder:
    return TextEncoder.of(file)


def _tokenizer_file(path: Path) -> Path:
    file = path / "tokenizer.json" if path.is_dir() else path
    if file.is_file() and file.suffix == ".json":
        return file
    if path.is_dir() and (path / "tokenizer.model").is_file():
        raise InputError(
            "{path} has a tokenizer.model, which is SentencePiece's, and no tokenizer.json; write "
            "one with AutoTokenizer.from_pretrained('{path}').save_pretrained('{path}')",
            path=path,
        )
    raise InputError(
        "{path} is no tokenizer; give a tokenizer.json, or a folder that holds one", path=path
    )


def _loaded(content: bytes, file: Path) -> Any:
    """Returns the tokenizer that ``content`` describes; raises InputError where it is none."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(content)
    except BaseException as error:  # the library's own word, which may be a panic of Rust's
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise InputError(
            "{path} is no tokenizer: {reason}; give a tokenizer.json as the tokenizers library "
            "writes it",
            path=file,
            reason=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from error


def _end_of_document(config: Path) -> str | None:
    """Returns the token that a tokenizer_config.json ends documents with, if it names one."""
    if not config.is_file():
        return None
    try:
        read = json.loads(
            read_text(config, TOKENIZER_CONFIG_BYTES.most, said("a tokenizer's settings"))
        )
    except (ValueError, RecursionError) as error:
        raise InputError("{path} is no JSON: {reason}", path=config, reason=error) from error
    token = read.get("eos_token") if isinstance(read, dict) else None
    # Older files write {"content": "</s>", "lstrip": false, …}.
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "folder {path}, which is to keep the tokens of the data, cannot be made: {reason}; set "
            "XDG_CACHE_HOME to one that can be written",
            path=folder,
            reason=error.strerror,
        ) from error


def _digest(files: Sequence[Path], key: str, encoder: TextEncoder) -> str:
    """Names what tokens are made of: which files, as old and as long as they are, and how."""
    stats = [(str(file.absolute()), file.stat()) for file in files]
    named = [(name, found.st_size, found.st_mtime_ns) for name, found in stats]
    made_by = hashlib.blake2b(encoder.content, digest_size=16).hexdigest()
    text = json.dumps([VERSION, named, key, made_by, encoder.end])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _make(file: Path, files: Sequence[Path], key: str, encoder: TextEncoder) -> None:
    """Writes the tokens of all files, in their order."""
    with whole_file(file) as written:
        for source in files:
            for group in _groups(documents(source, key)):
                for numbers in _numbers(group, encoder):
                    written.write(numbers.tobytes())


def _groups(pieces: Iterable[tuple[str, bool]]) -> Iterator[list[tuple[str, bool]]]:
    """Yields pieces in lists of at least AT_ONCE letters, but for the last."""
    group: list[tuple[str, bool]] = []
    letters = 0
    for piece in pieces:
        group.append(piece)
        letters += len(piece[0])
        if letters >= AT_ONCE:
            yield group
            group, letters = [], 0
    yield group


def _numbers(group: Sequence[tuple[str, bool]], encoder: TextEncoder) -> Iterator[NDArray[Any]]:
    end = np.array([encoder.end] if encoder.end >= 0 else [], dtype=f"<{encoder.dtype}")
    encoded = encoder.encode([text for text, _ in group])
    for (_, is_whole), numbers in zip(group, encoded, strict=True):
        yield numbers
        if is_whole:
            yield end
