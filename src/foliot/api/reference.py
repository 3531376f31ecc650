"""The reference as a page: the OpenAPI document made readable, without a script and without the network."""

import html
import json
from typing import Any, Final

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --quiet: #777; --accent: #b4661e; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 small { color: var(--quiet); font-weight: normal; font-size: 1rem; }
h2 { border-bottom: 1px solid var(--line); margin-top: 2.5rem; text-transform: capitalize; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: .5rem .8rem; }
summary { cursor: pointer; } code, pre { font: 13px/1.45 ui-monospace, monospace; }
summary b { display: inline-block; width: 4rem; color: var(--accent); }
pre { overflow: auto; background: #8881; padding: .7rem; border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2rem .6rem .2rem 0; }
.quiet { color: var(--quiet); }
"""


def page(document: dict[str, Any]) -> bytes:
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    schemas = "".join(
        f'<details id="{_text(name)}"><summary><code>{_text(name)}</code>'
        f" {_text(schema.get('description', ''))}</summary>"
        f"<pre>{_text(json.dumps(schema, indent=2))}</pre></details>"
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    body = "".join(f"<h2>{_text(tag)}</h2>{''.join(parts)}" for tag, parts in groups.items())
    info = document["info"]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Foliot API</title><style>{_STYLE}</style>'
        f"<h1>Foliot API <small>{_text(info['version'])}</small></h1><p>{_text(info['description'])}</p>"
        "<p>Send your key as <code>Authorization: Bearer fol_…</code>. Errors are "
        "<code>application/problem+json</code> and say what to do next. "
        'The same as a document for machines: <a href="/openapi.json">/openapi.json</a>.</p>'
        f"{body}<h2>Shapes</h2>{schemas}</html>"
    ).encode()


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{_text(each['name'])}</code><td class=quiet>{_text(each['in'])}"
        f"<td>{_text(_kind(each['schema']))}"
        for each in operation["parameters"]
    )
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    done = next(iter(operation["responses"].values()))["content"]["application/json"]["schema"]
    return (
        f"<details><summary><b>{_text(method.upper())}</b> <code>{_text(path)}</code>"
        f" {_text(operation['summary'])}</summary>"
        f'<p class="quiet">Scope <code>{_text(operation["x-scope"])}</code></p><table>{rows}</table>'
        + (f"<p>Body: {_link(body)}</p>" if body else "")
        + f"<p>Answer: {_link(done)}</p></details>"
    )


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"] if each.get("type") != "null")
    return str(schema.get("type", ""))


def _link(schema: dict[str, Any]) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    return (
        f'<a href="#{_text(name)}"><code>{_text(name)}</code></a>'
        if name
        else f"<code>{_text(json.dumps(schema))}</code>"
    )


def _text(value: Any) -> str:
    return html.escape(str(value))
