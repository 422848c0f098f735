"""Reads YAML as plain keys with lines: no object is built, no alias unfolds without end."""

from __future__ import annotations

import yaml

from serried.errors import InputError
from serried.launch.facts.keys import ConfigValue, Keys, Scalar, too_deep, too_many
from serried.limits import CONFIG_DEPTH, CONFIG_VALUES, YAML_NUMBER

STANDARD = "tag:yaml.org,2002:"
PLAIN = frozenset(("str", "int", "float", "bool", "null", "timestamp", "map", "seq", "merge"))
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str, file: str) -> Keys | None:
    """Returns the keys of a YAML mapping, or None when the text is something else.

    A text of several documents holds the keys of all of them.

    Raises InputError for a tag that would build an object, and for aliases that explode.

    >>> read("a:\\n  b: 2", "x.yaml").entries
    {'a.b': [ConfigValue(value=2, line=2, via='', why=None, file='')]}
    """
    nodes = _documents(text, file)
    # Nearly any text is YAML, if only one scalar; a config is a mapping, in each document.
    if not nodes or any(not isinstance(each, yaml.MappingNode) for each in nodes):
        return None
    reader = _Reader(Keys(file))
    for node in nodes:
        reader.node(node, "", 0)
    return reader.keys


def _documents(text: str, file: str) -> list[yaml.Node]:
    """Returns the documents that say something."""
    try:
        _require_bounded(text, file)
        nodes = [each for each in yaml.compose_all(text, LOADER) if each is not None]
        return [each for each in nodes if each.tag != STANDARD + "null"]
    except yaml.YAMLError as error:
        # An error in the grammar has a mark; a letter that YAML forbids has only its position.
        mark, place = getattr(error, "problem_mark", None), getattr(error, "position", 0)
        raise InputError(
            "{file} line {line} is no YAML: {problem}",
            file=file,
            line=mark.line + 1 if mark else text.count("\n", 0, place) + 1,
            problem=getattr(error, "problem", None) or str(error).split("\n")[0],
        ) from error
    except RecursionError as error:
        raise too_deep(file) from error


def _require_bounded(text: str, file: str) -> None:
    """Raises InputError for more values, or deeper ones, than a config holds.

    The parser goes through a text step by step; what makes nodes of it calls itself for each
    value in a value, and written in C it does so until the process ends.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, LOADER)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > CONFIG_DEPTH.most:
            raise too_deep(file)
        # A key with its value makes two events, with a mapping three; four leave room.
        if number > 4 * CONFIG_VALUES.most:
            raise too_many(file)


class _Reader:
    """Walks the nodes, counting every one as often as an alias repeats it."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.count = 0

    def node(self, node: yaml.Node, key: str, depth: int) -> None:
        self.count += 1
        if depth > CONFIG_DEPTH.most:
            raise too_deep(self.keys.file)
        if self.count > CONFIG_VALUES.most:
            raise too_many(self.keys.file)
        self._check(node)
        line = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, key, depth)
        elif isinstance(node, yaml.SequenceNode):
            # 'sizes: [2, 4]' is one value; of a list that holds mappings each has a key,
            # 'stages.0.tp'.
            if all(isinstance(each, yaml.ScalarNode) for each in node.value):
                values = tuple(self._scalar(each) for each in node.value)
                self.keys.add(key, ConfigValue(values, line))
                return
            for i, each in enumerate(node.value):
                self.node(each, f"{key}.{i}", depth + 1)
        else:
            self.keys.add(key, ConfigValue(self._scalar(node), line))

    def _mapping(self, node: yaml.MappingNode, key: str, depth: int) -> None:
        own = {name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode)}
        for name, value in node.value:
            if name.tag == STANDARD + "merge":
                self._merge(value, key, own, depth)
                continue
            # A key that is a list or a mapping ('? [a, b]') has no name here.
            text = name.value if isinstance(name, yaml.ScalarNode) else "?"
            self.node(value, f"{key}.{text}" if key else str(text), depth + 1)

    def _merge(self, node: yaml.Node, key: str, own: set[str], depth: int) -> None:
        """Adds what ``<<: *base`` brings, where the mapping itself does not say otherwise."""
        # Of '<<: [*small, *large]' the first goes before the second, hence 'own' grows.
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            if isinstance(part, yaml.MappingNode):
                for name, value in part.value:
                    if name.value not in own:
                        own.add(name.value)
                        self.node(value, f"{key}.{name.value}" if key else name.value, depth + 1)

    def _check(self, node: yaml.Node) -> None:
        tag = node.tag or ""
        if tag.startswith(STANDARD) and tag[len(STANDARD) :] in PLAIN:
            return
        shown = tag.replace(STANDARD, "!!")
        raise InputError(
            "{file} line {line}: the tag {tag} asks to build an object, which serried never does; "
            "write the plain value",
            file=self.keys.file,
            line=node.start_mark.line + 1,
            tag=shown,
        )

    def _scalar(self, node: yaml.Node) -> Scalar:
        self._check(node)
        text, tag = str(node.value), node.tag[len(STANDARD) :]
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() in ("true", "yes", "on")
        try:
            # YAML 1.1 calls '010' (eight) and '1:30' (ninety) whole numbers. Here they are ten, and
            # text.
            if tag == "int":
                if len(text) > YAML_NUMBER.most:
                    return text
                return int(text.replace("_", ""), 0 if not text.startswith("0") else 10)
            return float(text.replace("_", "")) if tag == "float" else text
        except ValueError:
            return text
