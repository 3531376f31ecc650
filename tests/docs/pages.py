"""The pages as tests read them: files, fenced blocks, links, headings, command lines."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = tuple(
    sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda page: page.relative_to(ROOT).as_posix())
)
NAMES: Final = tuple(page.relative_to(ROOT).as_posix() for page in PAGES)

_BLOCK: Final = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_VARIABLE: Final = re.compile(r"[A-Z_]+=\S*")


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    return _BLOCK.sub("", text_of(page))


def blocks(language: str, page: str | None = None) -> list[Block]:
    """Fenced blocks of a language, in all pages or in one."""
    found = []
    for name in [page] if page else NAMES:
        text = text_of(name)
        for match in _BLOCK.finditer(text):
            block = Block(name, text.count("\n", 0, match.start()) + 1, match[1], match[2])
            found += [block] if block.language == language else []
    return found


def links(page: str) -> Iterator[tuple[str, str]]:
    """Relative links as (path, anchor)."""
    for target in _LINK.findall(prose_of(page)):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(text: str) -> set[str]:
    """What links may name after a #: headings in lower case, without punctuation, hyphens for blanks."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(text)}


def command_lines(block: Block) -> Iterator[list[str]]:
    """The words of each `$ …` line, without variables set in front of it; continued lines are joined."""
    for raw in re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)", block.text, re.MULTILINE):
        if raw.count("'") % 2 or raw.count('"') % 2:
            continue  # goes on over several lines: a body for curl, not ours
        words = shlex.split(raw.replace("\\\n", " "), comments=True)
        while words and _VARIABLE.fullmatch(words[0]):
            del words[0]
        if words:
            yield words
