"""Links lead somewhere, and what stands in fenced blocks is right."""

import ast
import re
from contextlib import suppress

import click
import msgspec
import pytest

from docs.pages import NAMES, ROOT, anchors, blocks, command_lines, links, text_of
from foliot.cli.main import main
from foliot.wire.calendars import UnknownCalendars
from foliot.wire.jobs import JobBody, draft_of, payload_of
from foliot.wire.runs import RunBatch, RunBody, spec_and_target


@pytest.mark.parametrize("name", NAMES)
def test_relative_links_lead_somewhere(name):
    for path, anchor in links(name):
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), f"{name} links to {path}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{name} links to {path}#{anchor}"


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [(ROOT / "README.md").resolve()]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            waiting += [(page.parent / path).resolve() for path, _ in links(str(page.relative_to(ROOT))) if path]
    assert {(ROOT / name).resolve() for name in NAMES} <= reached


@pytest.mark.parametrize("name", NAMES)
def test_fences_are_closed_and_name_their_language(name):
    fences = re.findall(r"^```(.*)$", text_of(name), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert not any(fences[1::2])
    assert set(fences[::2]) <= {"python", "console", "json", "text", "sql"}


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_compiles_and_imports_what_exists(block):
    tree = ast.parse(block.text, str(block))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("foliot"):
            module = __import__(str(node.module), fromlist=["_"])
            for alias in node.names:
                assert hasattr(module, alias.name), f"{block} imports {alias.name} from {node.module}"


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_decodes_and_bodies_are_accepted(block):
    body = msgspec.json.decode(block.text)
    if "runs" in body:
        for run in msgspec.json.decode(block.text, type=RunBatch).runs:
            spec_and_target(run)
    elif "handler" in body and "name" in body:
        job = msgspec.json.decode(block.text, type=JobBody)
        with suppress(UnknownCalendars):
            draft_of(job, tenant=0)
    elif "handler" in body:
        run = msgspec.json.decode(block.text, type=RunBody)
        spec_and_target(run)
        payload_of(run)


@pytest.mark.parametrize("block", blocks("console"), ids=str)
def test_command_lines_are_understood(block):
    for words in command_lines(block):
        program = words[0].rpartition("/")[2]
        if program == "foliot":
            understand(words[1 : words.index("<")] if "<" in words else words[1:])
        elif program == "make":
            makefile = text_of("Makefile")
            targets = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
            for word in words[1:]:
                name, is_setting, _ = word.partition("=")
                assert f"$({name})" in makefile if is_setting else word in targets, f"{block}: make {word}"


def understand(words: list[str]) -> None:
    """Resolve the command and let click parse its options and arguments, without running anything."""
    command: click.Command = main
    context = click.Context(main, info_name="foliot")
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    command.make_context(context.info_name, list(words), parent=context.parent)


@pytest.mark.parametrize("line", ["nope", "job create", "job create a b --nope", "job list --limit 0", "run get"])
def test_a_wrong_command_line_is_found(line):
    with pytest.raises(click.UsageError):
        understand(line.split())


@pytest.mark.parametrize("name", NAMES)
def test_pages_speak_of_the_product_alone(name):
    text = text_of(name)
    assert not re.search(r"\.\./shared|\bCEO\b|\bsession \d|\bissue #?\d", text)
    assert not re.search(r"(?<![\w./-])/(root|work|home/[a-z]+)/", text), "a path of one machine"
