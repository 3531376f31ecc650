"""Writes the client that waits (`sdk/client`) from the one for the event loop (`sdk/aio`): the same, without `await`.

Run it after a change of `sdk/aio`, or `make sdk`. A test fails if what is there is not what this would write.
"""

import io
import keyword
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final

SDK: Final = Path(__file__).parents[2] / "src" / "foliot" / "sdk"
SOURCE: Final = SDK / "aio"
TWIN: Final = SDK / "client"
BY_HAND: Final = "transport.py"
"""What really differs: who waits for the network, and how."""
NOTE: Final = "# Written by `make sdk` from sdk/aio/{}: change that.\n"

_WORDS: Final = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "submit_async": "submit",
    "aio": "client",
}
_OPENING: Final = "The client for the event loop: the same names as `Foliot`, with `await`."
_SENTENCES: Final = {
    _OPENING: "The client that waits for each answer: the same names as `AsyncFoliot`, without `await`.",
    "`async with AsyncFoliot() as client`": "`with Foliot() as client`, or without closing it",
}
_FIXES: Final = "F401,I,RUF100,UP028,UP034"
_WORD: Final = re.compile(r"\w+")
_PAIRS: Final = {"(": ")", "[": "]", "{": "}"}


def twin_of(source: str, name: str) -> str:
    """The text of the twin of a module, formatted."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    parts, position = [NOTE.format(name)], 0
    for token, text in _edits(tokens):
        begin, end = (starts[row - 1] + column for row, column in (token.start, token.end))
        parts += [source[position:begin], text]
        is_word_gone = not text and token.type == tokenize.NAME and source[end] == " "
        position = end + is_word_gone
    return _tidied("".join([*parts, source[position:]]))


def _edits(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[tokenize.TokenInfo, str]]:
    """Each token that changes, in order, and what is written in its place."""
    dropped: set[int] = set()
    for index, token in enumerate(tokens):
        if token.type == tokenize.NAME and token.string in {"async", "await"}:
            dropped.add(index)
            if token.string == "await" and _is_grouping(tokens, index - 1):
                end = _end_of(tokens, index - 1)
                if _is_primary(tokens[index + 1 : end]):
                    dropped |= {index - 1, end}
        elif token.string == "Awaitable" and tokens[index + 1].string == "[":
            dropped |= {index, index + 1, _end_of(tokens, index + 1)}
    for index, token in enumerate(tokens):
        text = "" if index in dropped else _renamed(token)
        if text != token.string:
            yield token, text


def _is_grouping(tokens: list[tokenize.TokenInfo], index: int) -> bool:
    """Whether this opens a parenthesis around an expression, and not the arguments of a call."""
    before = tokens[index - 1]
    is_value = before.string in {")", "]"} or (before.type == tokenize.NAME and not keyword.iskeyword(before.string))
    return tokens[index].string == "(" and not is_value


def _end_of(tokens: list[tokenize.TokenInfo], start: int) -> int:
    """Where what is opened at `start` is closed."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].string in _PAIRS) - (tokens[index].string in _PAIRS.values())
        if depth == 0:
            return index
    raise ValueError(f"{tokens[start].string!r} in line {tokens[start].start[0]} is never closed")


def _is_primary(tokens: list[tokenize.TokenInfo]) -> bool:
    """Whether it is a name with its attributes, calls and subscripts: that needs no parentheses."""
    depth = 0
    for token in tokens:
        depth -= token.string in _PAIRS.values()
        is_part = token.type == tokenize.NAME or token.string in {".", *_PAIRS, *_PAIRS.values()}
        if depth == 0 and (not is_part or keyword.iskeyword(token.string)):
            return False
        depth += token.string in _PAIRS
    return True


def _renamed(token: tokenize.TokenInfo) -> str:
    if token.type not in {tokenize.NAME, tokenize.STRING, tokenize.COMMENT}:
        return token.string
    text = token.string
    for sentence, other in _SENTENCES.items() if token.type == tokenize.STRING else ():
        if sentence in text:
            return text.replace(sentence, other)
    return _WORD.sub(lambda word: _WORDS.get(word[0], word[0].removeprefix("Async")), text)


def _tidied(text: str) -> str:
    """Formatted, without the imports and remarks that were for the event loop."""
    ruff = shutil.which("ruff", path=Path(sys.executable).parent) or "ruff"
    config = ["--config", str(SDK.parents[2] / "pyproject.toml"), "--stdin-filename", str(TWIN / "any.py")]
    for command in (["check", "--quiet", "--fix", "--unsafe-fixes", "--select", _FIXES], ["format", "--quiet"]):
        done = subprocess.run([ruff, *command, *config, "-"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        text = done.stdout
    return text


def written() -> dict[str, str]:
    """What the twin consists of, by the names of its files."""
    sources = (path for path in sorted(SOURCE.glob("*.py")) if path.name != BY_HAND)
    return {path.name: twin_of(path.read_text(encoding="utf-8"), path.name) for path in sources}


if __name__ == "__main__":
    texts = written()
    for path in TWIN.glob("*.py"):
        if path.name not in {*texts, BY_HAND}:
            path.unlink()
    for name, text in texts.items():
        (TWIN / name).write_text(text, encoding="utf-8")
