"""Holds a document that was really made against its published schema."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from serried.schemas import json_schema


def conform(document: dict[str, Any], name: str) -> None:
    """Asserts that a document is of its published schema, and has no key that is not in it."""
    assert document["schema"] == name
    wrong = [
        f"{error.json_path}: {error.message[:200]}"
        for error in Draft202012Validator(_closed(json_schema(name))).iter_errors(document)
    ]
    assert wrong == []


def _closed(schema: Any) -> Any:
    """Returns a schema that takes no keys but those it names: for readers more may come."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _closed(value) for key, value in schema.items()}
    if isinstance(found.get("properties"), dict) and "type" in found:
        found.setdefault("additionalProperties", False)
    return found
