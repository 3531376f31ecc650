"""Inside /v1 changes are additive: what was released is still there, and whoever breaks it is told here."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from api.breaking import breaks
from api.released import released
from foliot.api.app import OPERATIONS
from foliot.api.openapi import document

NOW = json.loads(json.dumps(document(OPERATIONS)))


def test_nothing_that_was_released_is_broken():
    assert breaks(released(), NOW) == [], "see docs/reference/versioning.md"


def _alone(path: str) -> dict[str, Any]:
    """The document of one address: small enough to be compared many times."""
    return copy.deepcopy({**NOW, "paths": {path: NOW["paths"][path]}})


class Copy:
    """A document to be broken."""

    def __init__(self, path: str) -> None:
        self.document = _alone(path)

    def at(self, *names: Any) -> Any:
        found = self.document["paths"]
        for name in names:
            found = found[name]
            while isinstance(found, dict) and "$ref" in found:
                *_, kind, last = found["$ref"].split("/")
                found = self.document["components"][kind][last]
        return found


def _operations() -> Iterator[tuple[str, str, Any]]:
    for path, methods in NOW["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _bodies(path: str, method: str, operation: Any) -> Iterator[tuple[Any, ...]]:
    if "requestBody" in operation:
        yield path, method, "requestBody", "content", "application/json", "schema"


def _answers(path: str, method: str, operation: Any) -> Iterator[tuple[Any, ...]]:
    for status, answer in operation["responses"].items():
        if "application/json" in answer.get("content", {}):
            yield path, method, "responses", status, "content", "application/json", "schema"


def _planted() -> Iterator[tuple[str, str, Callable[[Copy], None]]]:
    """Every way in which this document could be broken that a line below can say: its address, what, and the deed."""
    for path, method, operation in _operations():
        yield path, f"{method} gone", lambda c, p=path, m=method: c.at(p).pop(m)
        yield path, "another scope", lambda c, p=path, m=method: c.at(p, m).update({"x-scope": "other"})
        yield path, "another name", lambda c, p=path, m=method: c.at(p, m).update(operationId="other")
        for index, each in enumerate(operation["parameters"]):
            yield path, f"{each['name']} gone", lambda c, p=path, m=method, i=index: c.at(p, m, "parameters").pop(i)
            if not each["required"]:
                yield (
                    path,
                    f"{each['name']} required",
                    lambda c, p=path, m=method, i=index: c.at(p, m, "parameters", i).update(required=True),
                )
        for status in operation["responses"]:
            yield path, f"{status} unnamed", lambda c, p=path, m=method, s=status: c.at(p, m, "responses").pop(s)
        for place in _bodies(path, method, operation):
            yield path, f"{method} body gone", lambda c, p=path, m=method: c.at(p, m).pop("requestBody")
            for name in Copy(path).at(*place).get("properties", {}):
                yield path, f"{name} refused", lambda c, w=place, n=name: c.at(*w, "properties").pop(n)
                yield path, f"{name} narrowed", lambda c, w=place, n=name: _narrow(c.at(*w, "properties"), n)
            yield path, "a new required field", lambda c, w=place: _require(c.at(*w))
        for place in _answers(path, method, operation):
            for name in Copy(path).at(*place).get("properties", {}):
                yield path, f"{name} untold", lambda c, w=place, n=name: c.at(*w, "properties").pop(n)
                if Copy(path).at(*place, "properties")[name].get("type") in {"string", "integer", "number", "boolean"}:
                    yield path, f"{name} otherwise", lambda c, w=place, n=name: _change(c.at(*w, "properties"), n)


def _narrow(fields: Any, name: str) -> None:
    """Only one text is taken where others were."""
    fields[name] = {"enum": ["the only one left"]}


def _change(fields: Any, name: str) -> None:
    """It is a list from now on."""
    fields[name] = {"type": "array", "items": fields[name]}


def _require(schema: Any) -> None:
    schema.setdefault("properties", {})["newcomer"] = {"type": "string"}
    schema["required"] = [*schema.get("required", []), "newcomer"]


PLANTED = list(_planted())


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLANTED))
def test_whatever_breaks_a_client_is_found(planted: tuple[str, str, Callable[[Copy], None]]):
    path, what, deed = planted
    broken = Copy(path)
    deed(broken)
    assert breaks(_alone(path), broken.document), (path, what)


def test_there_is_much_that_can_be_broken():
    assert len(PLANTED) > 1_000
    assert {"gone", "scope", "name", "required", "refused", "narrowed", "untold", "otherwise", "unnamed"} <= {
        what.rpartition(" ")[2] for _, what, _ in PLANTED
    }


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(NOW["paths"])))
def test_what_only_adds_is_let_through(path: str):
    more = Copy(path)
    before = copy.deepcopy(more.document)
    for method, operation in more.document["paths"][path].items():
        operation["parameters"].append({"name": "new", "in": "query", "required": False, "schema": {"type": "string"}})
        for place in _bodies(path, method, operation):
            more.at(*place).setdefault("properties", {})["new"] = {"type": "integer"}
        for place in _answers(path, method, operation):
            if "properties" in (answer := more.at(*place)):
                answer["properties"]["newer"] = {"type": "integer"}
    more.document["paths"]["/v1/more"] = {"get": {"parameters": [], "responses": {}}}
    assert breaks(before, more.document) == []


def test_bounds_and_values_may_grow_where_they_are_sent_and_not_shrink():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 5, "enum": [1, 2]}}}

    def taking(**change: Any) -> Any:
        body = copy.deepcopy(schema)
        body["properties"]["n"].update(change)
        content = {"application/json": {"schema": body}}
        operation = {"operationId": "x", "parameters": [], "responses": {}, "requestBody": {"content": content}}
        return {"paths": {"/x": {"post": operation}}, "components": {"schemas": {}}}

    for wider in ({"maximum": 6}, {"minimum": 0}, {"enum": [1, 2, 3]}, {"type": "number"}, {"description": "!"}):
        assert breaks(taking(), taking(**wider)) == [], wider
        if wider != {"description": "!"}:
            assert breaks(taking(**wider), taking()), wider
