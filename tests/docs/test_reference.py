"""The reference says what the code has, and nothing else."""

import re
from pathlib import Path

import msgspec
import pytest

import foliot
from docs.pages import NAMES, ROOT, text_of
from docs.tables import GENERATED, REGION, leaves, metrics, renewed
from foliot.api.app import OPERATIONS
from foliot.domain.states import State, Status
from foliot.kit.settings import Settings
from foliot.kit.telemetry import REGISTRY, SEEN
from foliot.wire.jobs import JobBody
from foliot.wire.runs import RunBody

_SETTING = re.compile(r"\bFOLIOT_[A-Z][A-Z_]*[A-Z]\b")
_METRIC = re.compile(r"\bfoliot_[a-z]+_[a-z_]+\b")
_PROBLEM = re.compile(r'(?:\d{3}|status), "([a-z]+(?:-[a-z]+)*)", "[A-Z]')
_CHANNELS = {"foliot_ready", "foliot_due"}
_REWRITE = "run `.venv/bin/python tests/docs/tables.py`, then add what a reader needs to know"


def _source() -> str:
    package = Path(foliot.__file__).parent
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py")))


def _everywhere() -> str:
    return "\n".join(map(text_of, NAMES))


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs/reference").glob("*.md")))
def test_generated_tables_are_what_the_code_says(name):
    text = text_of(f"docs/reference/{name}")
    assert text == renewed(text), _REWRITE


def test_every_generated_table_has_its_page():
    found = re.findall(r"<!-- generated: (\w+) -->", _everywhere())
    assert sorted(found) == sorted(GENERATED)
    assert len(REGION.findall(_everywhere())) == len(GENERATED), "a generated region has no end"


def test_every_setting_is_documented_and_every_documented_one_exists():
    used = set(_SETTING.findall(_source()))
    assert used == set(_SETTING.findall(text_of("docs/reference/settings.md")))
    assert set(_SETTING.findall(_everywhere())) <= used


def test_documented_defaults_are_the_real_ones():
    rows = dict(
        re.findall(r"^\| `(FOLIOT_\w+)` \| `?([^|`]+?)`? \|", text_of("docs/reference/settings.md"), re.MULTILINE)
    )
    real = Settings.read({})
    assert rows["FOLIOT_HOME"] == real.home.name
    assert rows["FOLIOT_HOST"] == real.host
    assert rows["FOLIOT_PORT"] == str(real.port)
    assert rows["FOLIOT_LOG_LEVEL"] == real.log_level
    assert rows["FOLIOT_LOG_JSON"] == "off"
    assert not real.log_json
    empty = (real.database_url, real.postgres_bin, real.postgres_account)
    assert empty == (None, None, None)
    assert {rows[f"FOLIOT_{name}"] for name in ("DATABASE_URL", "POSTGRES_BIN", "POSTGRES_ACCOUNT")} == {"none"}


def test_no_page_speaks_of_a_metric_that_does_not_exist():
    families = {family.name for family in (*REGISTRY.collect(), *SEEN.collect())}
    known = families | set(_METRIC.findall(metrics())) | _CHANNELS
    assert set(_METRIC.findall(_everywhere())) <= known


def test_each_metric_says_which_process_counts_it():
    section = text_of("docs/reference/metrics.md").split("## Which process counts what")[1].split("##")[0]
    assert set(_METRIC.findall(section)) == set(_METRIC.findall(metrics()))


def test_no_page_speaks_of_a_route_that_does_not_exist():
    known = {re.sub(r"{\w+}", "{}", each.path) for each in OPERATIONS} | {"/v1"}
    for name in NAMES:
        for path in re.findall(r"(?<![\w{}.])/v1(?:/[\w:/{}-]+)?", text_of(name)):
            plain = re.sub(r"{\w+}|\b(?:job|run)_[0-9a-z]{13}\b", "{}", path)
            assert plain.rstrip(":/") in known, f"{name} speaks of {path}"


def test_operations_are_documented_with_method_path_and_scope():
    page = text_of("docs/reference/api.md")
    for each in OPERATIONS:
        assert f"| `{each.method}` | `{each.path}` | `{each.name}` | `{each.scope}` |" in page


def test_every_command_has_its_section_with_every_option():
    page = text_of("docs/reference/cli.md")
    sections = {part.partition("\n")[0]: part for part in page.split("\n### ")[1:]}
    assert set(sections) == {" ".join(words) for words, _ in leaves()}
    for words, command in leaves():
        for option in (name for parameter in command.params for name in parameter.opts if name.startswith("--")):
            assert f"`{option}" in sections[" ".join(words)], f"{words} {option}"


@pytest.mark.parametrize("body", [JobBody, RunBody])
def test_every_field_of_a_body_is_documented(body):
    fields = {field.encode_name for field in msgspec.structs.fields(body)}
    assert {field for field in fields if f"`{field}`" not in text_of("docs/reference/api.md")} == set()


def test_every_kind_of_problem_is_documented():
    kinds = set(_PROBLEM.findall(_source()))
    assert {"invalid", "dependency-cycle", "no-such-call"} <= kinds
    assert {kind for kind in kinds if f"| `{kind}` |" not in text_of("docs/reference/api.md")} == set()


def test_what_can_be_made_is_listed_as_make_lists_it():
    helped = re.findall(r"^([a-z-]+):.*?## (.*)$", text_of("Makefile"), re.MULTILINE)
    listed = re.findall(r"^  make ([a-z-]+) +(.*)$", text_of("docs/guides/developing.md"), re.MULTILINE)
    assert listed == helped


@pytest.mark.parametrize("word", [*(state.word for state in State), *Status])
def test_every_state_and_status_is_explained(word):
    text = text_of("docs/reference/states.md")
    generated = "".join(found[1] for found in REGION.findall(text))
    assert f"`{word}`" in text
    by_hand = REGION.sub("", text)
    assert f"`{word}`" in by_hand, f"`{word}` stands in a table only: say what it means"
    assert generated
