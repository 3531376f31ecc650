"""Which changes of the OpenAPI document would break a client that was written for the one before.

What a client sends must still be taken, and what it reads must still be there. Fields, values and operations may come
to it: clients ignore what they do not know (docs/reference/versioning.md).
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]
UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
SAME = ("pattern", "format", "const")


def breaks(old: Schema, new: Schema) -> list[str]:
    """What a client of `old` would stumble over in `new`, in words."""
    return [f"{place}: {what}" for place, what in _breaks(old, new)]


def _breaks(old: Schema, new: Schema) -> Iterator[tuple[str, str]]:
    for path, methods in old["paths"].items():
        for method, before in methods.items():
            place = f"{method.upper()} {path}"
            after = new["paths"].get(path, {}).get(method)
            if after is None:
                yield place, "is gone"
            else:
                yield from _of_operation(place, before, after, old, new)


def _of_operation(place: str, before: Schema, after: Schema, old: Schema, new: Schema) -> Iterator[tuple[str, str]]:
    for name in ("operationId", "x-scope"):
        if before.get(name) != after.get(name):
            yield place, f"{name} was {before.get(name)} and is {after.get(name)}"
    sent, read = Comparison(old, new, sends=True), Comparison(new, old, sends=False)
    yield from _of_parameters(place, before, after, sent)
    was, is_now = before.get("requestBody"), after.get("requestBody")
    if is_now and is_now.get("required") and not (was and was.get("required")):
        yield place, "a body must be sent now"
    if was and not is_now:
        yield place, "takes no body any more"
    elif was and is_now:
        yield from _of_contents(f"{place} body", was["content"], is_now["content"], sent)
    for status, told in before["responses"].items():
        if status not in after["responses"]:
            yield place, f"{status} is not answered any more"
            continue
        answer, now = _resolved(told, old), _resolved(after["responses"][status], new)
        yield from _of_contents(f"{place} {status}", answer.get("content", {}), now.get("content", {}), read)
        for name in answer.get("headers", {}).keys() - now.get("headers", {}).keys():
            yield f"{place} {status}", f"the header {name} is gone"


def _of_parameters(place: str, before: Schema, after: Schema, sent: "Comparison") -> Iterator[tuple[str, str]]:
    was, is_now = ({(each["in"], each["name"]): each for each in side["parameters"]} for side in (before, after))
    for key, parameter in was.items():
        if key not in is_now:
            yield place, f"the parameter {key[1]} is gone"
        else:
            yield from sent.compare(f"{place} {key[1]}", parameter["schema"], is_now[key]["schema"])
    for key, parameter in is_now.items():
        if parameter.get("required") and not was.get(key, {}).get("required"):
            yield place, f"the parameter {key[1]} must be sent now"


def _of_contents(place: str, was: Schema, is_now: Schema, comparison: "Comparison") -> Iterator[tuple[str, str]]:
    for kind, content in was.items():
        if kind not in is_now:
            yield place, f"{kind} is gone"
            continue
        pair = (content["schema"], is_now[kind]["schema"])
        yield from comparison.compare(place, *(pair if comparison.sends else reversed(pair)))


class Comparison(NamedTuple):
    """Whether every value of one schema is one of another's.

    What is sent: of the old one, in the new one. What is read: of the new one, in the old one.
    """

    inner: Schema
    outer: Schema
    sends: bool

    def compare(
        self, place: str, inner: Schema, outer: Schema, seen: frozenset[tuple[str, str]] = frozenset()
    ) -> list[tuple[str, str]]:
        pair = (inner.get("$ref", ""), outer.get("$ref", ""))
        if all(pair):
            if pair in seen:
                return []
            seen |= {pair}
        inner, outer = _resolved(inner, self.inner), _resolved(outer, self.outer)
        if not outer.keys() - {"description", "title", "default"}:
            return []
        accepted = _choices(outer)
        found: list[tuple[str, str]] = []
        for choice in _choices(inner):
            tried = [list(self._one(place, choice, each, seen)) for each in accepted]
            found += min(tried, key=len) if all(tried) else []
        return found

    def _one(self, place: str, inner: Schema, outer: Schema, seen: frozenset[Any]) -> Iterator[tuple[str, str]]:
        if "$ref" in inner or "$ref" in outer or "anyOf" in inner or "anyOf" in outer:
            yield from self.compare(place, inner, outer, seen)
            return
        if not outer.keys() - {"description", "title", "default"}:
            return
        types, allowed = _types(inner), _types(outer)
        if allowed and not types <= allowed | ({"integer"} if "number" in allowed else set()):
            yield place, f"{_said(types)} where it is {_said(allowed)}"
            return
        if self.sends and "enum" in outer:
            for value in set(inner.get("enum", ["any other value"])) - set(outer["enum"]):
                yield place, f"{value!r} is not taken any more"
        yield from self._of_bounds(place, inner, outer)
        if "items" in outer and isinstance(outer["items"], Mapping):
            yield from self.compare(f"{place}[]", inner.get("items") or {}, outer["items"], seen)
        if isinstance(outer.get("additionalProperties"), Mapping) and isinstance(
            inner.get("additionalProperties"), Mapping
        ):
            pair = (inner["additionalProperties"], outer["additionalProperties"])
            yield from self.compare(f"{place}.*", *pair, seen)
        yield from self._of_fields(place, inner, outer, seen)

    def _of_bounds(self, place: str, inner: Schema, outer: Schema) -> Iterator[tuple[str, str]]:
        for name in UPPER:
            if name in outer and inner.get(name, float("inf")) > outer[name]:
                yield place, f"{name} {inner.get(name, 'none')} is beyond {outer[name]}"
        for name in LOWER:
            if name in outer and inner.get(name, float("-inf")) < outer[name]:
                yield place, f"{name} {inner.get(name, 'none')} is below {outer[name]}"
        for name in SAME:
            if name in outer and inner.get(name) != outer[name]:
                yield place, f"{name} is {outer[name]} on one side and {inner.get(name)} on the other"

    def _of_fields(self, place: str, inner: Schema, outer: Schema, seen: frozenset[Any]) -> Iterator[tuple[str, str]]:
        had, has = inner.get("properties", {}), outer.get("properties", {})
        for name in had.keys() & has.keys():
            yield from self.compare(f"{place}.{name}", had[name], has[name], seen)
        gone = had.keys() - has.keys() if self.sends else has.keys() - had.keys()
        said = "is not taken any more" if self.sends else "is not answered any more"
        yield from ((f"{place}.{name}", said) for name in sorted(gone))
        missing = set(outer.get("required", [])) - set(inner.get("required", []))
        said = "must be sent now" if self.sends else "may be missing now"
        yield from ((f"{place}.{name}", said) for name in sorted(missing & (has.keys() | had.keys())))


def _resolved(schema: Schema, document: Schema) -> Schema:
    """What is meant, if only its place is told: a shape, an answer."""
    while reference := schema.get("$ref"):
        *_, kind, name = reference.split("/")
        schema = document["components"][kind][name]
    return schema


def _choices(schema: Schema) -> list[Schema]:
    return list(schema.get("anyOf") or schema.get("oneOf") or [schema])


def _types(schema: Schema) -> set[str]:
    found = schema.get("type")
    if found is None and "enum" in schema:
        return {"string" if isinstance(each, str) else "integer" for each in schema["enum"]}
    return set() if found is None else {found} if isinstance(found, str) else set(found)


def _said(types: set[str]) -> str:
    return " or ".join(sorted(types)) or "anything"
