"""The reference as a page: the OpenAPI document made readable, without a script and without the network."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from foliot.api.style import STYLE

_RULES: Final = (
    ("Keys", "Send yours as `Authorization: Bearer fol_…`. Each call names the scope that a key needs for it."),
    ("Errors", "`application/problem+json`: what went wrong, in which field, and what to do next."),
    ("Lists", "Pass `nextCursor` on as `cursor`, unchanged and with the same filters; null ends the list."),
    ("Once", "With an `Idempotency-Key` whatever creates something does it once: repeats get the first answer."),
    (
        "Versions",
        "`If-Match` with the `ETag` of an answer changes only what you have seen; inside /v1 changes are additive.",
    ),
)
_EXAMPLES: Final = {
    "createJob": {"name": "nightly-report", "handler": "https://example.com/run", "cronExpression": "0 9 * * MON"},
    "createRun": {"handler": "https://example.com/run", "payload": {"team": 7}},
    "changeJob": {"cronExpression": "0 10 * * *"},
    "createKey": {"name": "deploys", "role": "editor"},
}
_DEEPEST: Final = 3
_CODE: Final = re.compile(r"`([^`]+)`")


def page(document: Mapping[str, Any]) -> bytes:
    groups: dict[str, list[tuple[str, str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append((method, path, operation))
    schemas = document["components"]["schemas"]
    info = document["info"]
    rules = "".join(f"<tr><td>{_text(name)}<td>{_prose(rule)}" for name, rule in _RULES)
    sections = "".join(
        f"<section><h2>{_text(tag)}</h2>{''.join(_operation(*each, schemas) for each in calls)}</section>"
        for tag, calls in groups.items()
    )
    shapes = "".join(_shape(name, schema) for name, schema in sorted(schemas.items()))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Foliot API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body>{_contents(groups)}<main><h1>Foliot API <small>{_text(info['version'])}</small></h1>"
        f"<p>{_text(info['description'])}</p><table>{rules}</table>"
        '<p class="quiet">The same for machines: <a href="/openapi.json">/openapi.json</a>.</p>'
        f'{sections}<section id="refusals"><h2>Refusals</h2>{_refusals(document)}</section>'
        f'<section id="shapes"><h2>Shapes</h2>{shapes}</section></main></body></html>'
    ).encode()


def _contents(groups: Mapping[str, list[tuple[str, str, Any]]]) -> str:
    parts = "".join(
        f"<h2>{_text(tag)}</h2><ul>"
        + "".join(
            f'<li><a href="#{_text(each["operationId"])}"><b class="verb {method}">{method.upper()}</b> '
            f"{_text(each['operationId'])}</a>"
            for method, _, each in calls
        )
        + "</ul>"
        for tag, calls in groups.items()
    )
    rest = "".join(f'<h2><a href="#{each.lower()}">{each}</a></h2>' for each in ("Refusals", "Shapes"))
    return f'<nav aria-label="Contents"><strong>Foliot API</strong>{parts}{rest}</nav>'


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    name = _text(operation["operationId"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return (
        f'<article id="{name}"><header><b class="verb {method}">{method.upper()}</b>'
        f'<a class="self" href="#{name}"><code>{_text(path)}</code></a><span class="quiet">{name}, needs '
        f"<code>{_text(operation['x-scope'])}</code></span><p>{_prose(operation['summary'])}</p></header><div>"
        + _parameters(operation["parameters"])
        + (f"<h3>Body: {_kind(body)}</h3>{_fields(_resolved(body, schemas))}" if body else "")
        + _answers(operation["responses"])
        + f"<details><summary>Try it</summary><pre>{_text(_example(method, path, operation, body))}</pre></details>"
        "</div></article>"
    )


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{_text(each['name'])}</code> <span class=quiet>{_text(each['in'])}</span>"
        f"<td>{_kind(each['schema'])} {_prose(each.get('description', ''))}"
        for each in parameters
    )
    return f"<h3>Parameters</h3><table>{rows}</table>" if rows else ""


def _answers(responses: Mapping[str, Any]) -> str:
    """What is the operation's own in a row each; the refusals that it shares with others in one, with links."""
    shared = {status: answer["$ref"].rpartition("/")[2] for status, answer in responses.items() if "$ref" in answer}
    links = " ".join(f'<a href="#{_text(name)}"><code>{_text(status)}</code></a>' for status, name in shared.items())
    rows = "".join(
        _answer("otherwise" if status == "default" else status, answer)
        for status, answer in responses.items()
        if status not in shared
    )
    return f"<h3>Answers</h3><table>{rows}<tr><td>refusals<td>{links}</table>"


def _answer(status: str, answer: Mapping[str, Any]) -> str:
    kinds = " or ".join(_kind(each["schema"]) for each in answer.get("content", {}).values())
    return f"<tr><td><code>{_text(status)}</code><td>{kinds} <span class=quiet>{_prose(answer['description'])}</span>"


def _refusals(document: Mapping[str, Any]) -> str:
    """Each refusal once: when it comes, and what its headers say."""
    said = document["components"]["headers"]
    named = {
        status: answer["$ref"].rpartition("/")[2]
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, answer in operation["responses"].items()
        if "$ref" in answer
    }
    return "".join(
        f'<article id="{_text(name)}"><header><a class="self" href="#{_text(name)}"><code>{_text(status)}</code></a>'
        f'<span class="quiet">{_text(name)}</span><p>{_prose(answer["description"])}</p></header><div><table>'
        + "".join(
            f"<tr><td><code>{_text(each)}</code><td>{_prose(said[each]['description'])}"
            for each in answer.get("headers", {})
        )
        + "</table></div></article>"
        for status, name in sorted(named.items())
        for answer in [document["components"]["responses"][name]]
    )


def _shape(name: str, schema: Mapping[str, Any]) -> str:
    return (
        f'<article id="{_text(name)}"><header><a class="self" href="#{_text(name)}"><code>{_text(name)}</code></a>'
        f"<p>{_prose(schema.get('description', ''))}</p></header><div>{_fields(schema)}</div></article>"
    )


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{_text(name)}</code>{' <span class=must>required</span>' if name in required else ''}"
        f"<td>{_kind(field)} {_prose(field.get('description', ''))} {_usual(field)}"
        for name, field in schema.get("properties", {}).items()
    )
    return f"<table>{rows}</table>" if rows else f"<p>{_kind(schema)}</p>"


def _usual(field: Mapping[str, Any]) -> str:
    given = field.get("default")
    return (
        "" if given in (None, [], {}) else f"<span class=quiet>usually <code>{_text(json.dumps(given))}</code></span>"
    )


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return schemas[name] if name else schema


def _kind(schema: Any, depth: int = 0) -> str:
    """The type in a few words, with links to the shapes that it speaks of."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return "anything"
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f'<a href="#{_text(name)}"><code>{_text(name)}</code></a>'
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_kind(each, depth + 1) for each in choices))
    if "enum" in schema:
        return " | ".join(f"<code>{_text(json.dumps(each))}</code>" for each in schema["enum"])
    for within, said in (("items", "list of"), ("additionalProperties", "object of")):
        if isinstance(inner := schema.get(within), Mapping):
            return f"{said} {_kind(inner, depth + 1)}"
    return _text(schema.get("format") or schema.get("type") or "anything") + "".join(_bounds(schema))


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        yield f" from {least:,} to {most:,}"
    if (longest := schema.get("maxLength")) is not None:
        yield f", at most {longest:,} long"


def _example(method: str, path: str, operation: Mapping[str, Any], body: Any) -> str:
    lines = [f'curl -X {method.upper()} "$FOLIOT_URL{path}" -H "Authorization: Bearer $FOLIOT_KEY"']
    if body:
        sent = _EXAMPLES.get(operation["operationId"])
        lines.append("  -d " + ("@body.json" if sent is None else f"'{json.dumps(sent)}'"))
    return " \\\n".join(lines)


def _prose(text: str) -> str:
    """Text in which `names` are set apart."""
    return _CODE.sub(r"<code>\1</code>", _text(text))


def _text(value: Any) -> str:
    return html.escape(str(value))
