"""The OpenAPI document, made from the table of operations."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from foliot import __version__
from foliot.api.operation import Operation
from foliot.api.refusals import LEFT, components, headers, refusals_of
from foliot.wire.problems import Problem

_PARAMETER = re.compile(r"{(\w+)}")
_REF = "#/components/schemas/{name}"
_ETAG: dict[str, Any] = {
    "description": 'The version, and what it looks like just now: `"7-9f86d081884c"`',
    "schema": {"type": "string"},
}


_ALSO = {
    200: {"description": "Done, or a dry run"},
    201: {"description": "Created"},
    202: {"description": "Begun: follow the operation that it speaks of"},
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    types = [kind for each in operations for kind in (each.body, each.result) if kind is not None]
    schemas, shapes = msgspec.json.schema_components([*types, Problem], ref_template=_REF)
    known = dict(zip(map(str, [*types, Problem]), schemas, strict=True))
    shapes["JobPatch"] = {
        **{name: value for name, value in shapes["JobBody"].items() if name not in {"required", "title"}},
        "title": "JobPatch",
        "description": "Some fields of a job; null takes a field away.",
    }
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Foliot",
            "version": __version__,
            "description": "Jobs that run now, at an instant, or on a schedule. Inside /v1 changes are additive.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": shapes,
            **components(known[str(Problem)]),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "bearerFormat": "fol_<keyid>_<secret>"},
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "fct_…, the Foliot-Token of a call"},
            },
        },
    }


def _operation(operation: Operation, known: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.path.split("/")[2].split(":")[0]],
        "x-scope": operation.scope,
        "parameters": _parameters(operation),
        "responses": _responses(operation, known),
    }
    if not operation.needs_key:
        answer["security"] = [{"token": []}]
    if operation.body is not None:
        schema = {"$ref": _REF.format(name="JobPatch")} if operation.name == "changeJob" else known[str(operation.body)]
        answer["requestBody"] = {
            "required": not operation.body_is_optional,
            "content": {"application/json": {"schema": schema}},
        }
        if operation.text is not None:
            answer["requestBody"]["content"][operation.text[0]] = {"schema": {"type": "string"}}
    return answer


def _responses(operation: Operation, known: dict[str, Any]) -> dict[str, Any]:
    """What it answers when it has done what it is for, by what names it refuses, and a fault of ours."""
    problem = {"application/problem+json": {"schema": known[str(Problem)]}}
    told = {**({"ETag": _ETAG} if operation.is_versioned else {}), **headers(*(LEFT if operation.is_paced else ()))}
    done: dict[str, Any] = {
        "description": "Done",
        **({"headers": told} if told else {}),
        "content": {"application/json": {"schema": known[str(operation.result)]}},
    }
    answers = {str(operation.status): done, **{str(each): {**done, **_ALSO[each]} for each in operation.also}}
    if operation.is_versioned and operation.method == "GET":
        answers["304"] = {"description": "As it was (If-None-Match)", "headers": told}
    refused = refusals_of(operation)
    if operation.is_conditional:
        said = "It is at another version than the one that was named; ETag tells which"
        refused["412"] = {"description": said, "headers": told, "content": problem}
    answers |= dict(sorted(refused.items()))
    return {**answers, "default": {"description": "Something went wrong on our side", "content": problem}}


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(operation.path)
    ]
    if operation.query is not None:
        _, components = msgspec.json.schema_components([operation.query], ref_template=_REF)
        for name, schema in components[operation.query.__name__]["properties"].items():
            found.append({"name": name, "in": "query", "required": False, "schema": schema})
    if operation.takes_key:
        said = "The same key does it once, for 24 hours or longer; repeats get the first answer."
        found.append(_header("Idempotency-Key", said, 200))
    if operation.is_conditional:
        found.append(_header("If-Match", 'Change it only at this version: the ETag of an answer, or `"7"`.', 1_000))
    if operation.is_versioned and operation.method == "GET":
        found.append(_header("If-None-Match", "Answer 304 if it still looks like that: the ETag of an answer.", 1_000))
    if operation.is_conditional and operation.method == "PUT":
        found.append(_header("If-None-Match", "`*`: only create it, replace nothing.", 1))
    return found


def _header(name: str, description: str, longest: int) -> dict[str, Any]:
    schema = {"type": "string", "maxLength": longest}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}
