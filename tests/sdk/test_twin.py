"""The client that waits is what is written from the other one, and nothing was changed in it by hand."""

import ast

import pytest

from foliot.sdk.fields import JobChanges
from foliot.sdk.records import Job, OperationRecord, RunRecord
from foliot.wire.job_views import JobView
from foliot.wire.jobs import JobBody
from foliot.wire.operations import OperationView
from foliot.wire.run_views import RunView
from sdk import twin


def test_the_twin_is_what_would_be_written():
    there = {path.name: path.read_text() for path in twin.TWIN.glob("*.py") if path.name != twin.BY_HAND}
    assert there == twin.written(), "run `make sdk`"


def test_nothing_of_the_event_loop_is_left_in_it():
    for name, text in twin.written().items():
        tree = ast.walk(ast.parse(text))
        waits = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
        assert not [node for node in tree if isinstance(node, waits)], name
        assert "asyncio" not in text, name


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ('x = (await self.f(1))["a"]', 'x = self.f(1)["a"]'),
        ("x = (await f(1) or g).y", "x = (f(1) or g).y"),
        ("x = g(await f(1), 2)", "x = g(f(1), 2)"),
        ("x = {**await f(), 1: 2}", "x = {**f(), 1: 2}"),
        ("return_ = [x async for x in y]", "return_ = [x for x in y]"),
        ("f: Callable[[int], Awaitable[dict[str, int]]] = g", "f: Callable[[int], dict[str, int]] = g"),
        ("async def f():\n    async with AsyncFoliot() as c:\n        await c.x()", None),
        ('"""Of an AsyncRun one may await the end."""', '"""Of an Run one may await the end."""'),
    ],
)
def test_what_waits_is_taken_out_and_names_are_those_of_the_twin(source: str, written: str | None):
    written = "def f():\n    with Foliot() as c:\n        c.x()" if written is None else written
    assert twin.twin_of(source, "x.py").partition("\n")[2].strip() == written


def test_what_calls_take_by_name_is_what_the_wire_takes():
    assert JobChanges.__annotations__.keys() == set(JobBody.__struct_fields__)


@pytest.mark.parametrize(("record", "view"), [(Job, JobView), (RunRecord, RunView), (OperationRecord, OperationView)])
def test_records_declare_fields_that_are_answered_and_know_which_are_instants(record: type, view: type):
    declared = {name: hint for name, hint in record.__annotations__.items() if not name.startswith("_")}
    assert declared.keys() <= set(view.__struct_fields__)
    instants = {name for name in declared if "datetime" in str(view.__annotations__[name])}
    assert instants == record._INSTANTS
