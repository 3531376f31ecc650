"""How the reference looks: one style sheet, for light and dark, wide and narrow; and the leave to use it."""

import base64
import hashlib
from types import MappingProxyType
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ground: #fffdf9; --ink: #23262a; --quiet: #6a6f76; --line: #e4dfd6; --soft: #f6f2ea;
  --get: #1d6a56; --post: #9a5412; --put: #3e55a3; --delete: #a32d33; --accent: #9a5412; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181b; --ink: #dfe1e4; --quiet: #979da5; --line: #2d3136;
  --soft: #1d2024; --get: #6cc5a8; --post: #e5a35c; --put: #8fa7f5; --delete: #ef8a8f; --accent: #e5a35c; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body { margin: 0; display: grid; grid-template-columns: 18rem minmax(0, 1fr); background: var(--ground);
  color: var(--ink); font: 15px/1.6 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem 3rem 1.5rem;
  border-right: 1px solid var(--line); font-size: 13px; }
nav h2 { margin: 1.2rem 0 .2rem; font-size: 12px; letter-spacing: .06em; text-transform: uppercase;
  color: var(--quiet); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: block; padding: .1rem 0; color: inherit; text-decoration: none; overflow-wrap: anywhere; }
nav li a:hover, nav li a:focus { color: var(--accent); text-decoration: underline; }
main { padding: 2rem clamp(1rem, 4vw, 4rem) 6rem; max-width: 66rem; }
h1 { font-size: 1.9rem; margin: 0; } h1 small { color: var(--quiet); font-weight: normal; font-size: 1rem; }
main > section > h2 { margin: 3rem 0 .5rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line);
  text-transform: capitalize; }
article { margin: 1rem 0; border: 1px solid var(--line); border-radius: .6rem; overflow: hidden; }
article:target { border-color: var(--accent); }
article header { display: flex; flex-wrap: wrap; gap: .2rem .8rem; align-items: baseline; padding: .6rem 1rem;
  background: var(--soft); }
article header p { flex-basis: 100%; margin: 0; }
article > div { padding: .2rem 1rem 1rem; }
a { color: var(--accent); } a.self { color: inherit; text-decoration: none; }
code, pre, kbd { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, monospace; overflow-wrap: anywhere; }
pre { margin: .6rem 0; padding: .7rem .9rem; overflow: auto; border-radius: .4rem; background: var(--soft); }
b.verb { font: 600 12px/1.5 ui-monospace, monospace; letter-spacing: .03em; }
.get { color: var(--get); } .post { color: var(--post); } .put, .patch { color: var(--put); }
.delete { color: var(--delete); }
h3 { margin: 1rem 0 .2rem; font-size: 13px; color: var(--quiet); font-weight: 600; }
table { width: 100%; border-collapse: collapse; } td { padding: .25rem .8rem .25rem 0; vertical-align: top; }
tr + tr td { border-top: 1px solid var(--line); } td:first-child { width: 14rem; }
.quiet { color: var(--quiet); } .must { color: var(--delete); font-size: 12px; }
summary { cursor: pointer; } details { margin: .4rem 0; }
@media (max-width: 60rem) { body { display: block; } nav { position: static; height: auto; max-height: 40vh;
  border-right: 0; border-bottom: 1px solid var(--line); } }
@media print { nav { display: none; } body { display: block; } }
"""
_DIGEST: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS: Final = MappingProxyType(
    {
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
)
"""The page may use this sheet, and nothing else from anywhere."""
