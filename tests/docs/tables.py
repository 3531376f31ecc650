"""The tables of docs/reference that derive from code. Run it to write them anew; the tests compare."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from foliot.api.app import OPERATIONS
from foliot.cli.codes import MEANINGS
from foliot.cli.examples import EXAMPLES
from foliot.cli.main import main
from foliot.domain.access import GRANTS, Role, Scope
from foliot.domain.outcome import Ending
from foliot.domain.states import FINISHED, STATUS_OF, TRANSITIONS, Event, State
from foliot.kit.telemetry import REGISTRY, SEEN

ROOT: Final = Path(__file__).parents[2]
REFERENCE: Final = ROOT / "docs" / "reference"
REGION: Final = re.compile(r"(?<=<!-- generated: )(\w+) -->\n(.*?)(?=<!-- end -->)", re.DOTALL)


def operations() -> str:
    rows = [
        [f"`{each.method}`", f"`{each.path}`", f"`{each.name}`", f"`{each.scope}`", f"{each.summary}."]
        for each in OPERATIONS
    ]
    return table(["method", "path", "operation", "scope", "does"], rows)


def roles() -> str:
    having = {role: GRANTS[role] for role in Role if GRANTS[role]}
    rows = [[f"`{each}`", *("yes" if each in has else "" for has in having.values())] for each in Scope]
    return table(["scope", *(f"`{role}`" for role in having)], [row for row in rows if any(row[1:])])


def states() -> str:
    rows = [
        [f"`{state.word}`", f"`{STATUS_OF[state]}`", "yes" if state in FINISHED else "", str(state.value)]
        for state in State
    ]
    return table(["state", "status", "finished", "stored as"], rows)


def transitions() -> str:
    rows = [
        [f"`{state.word}`", event.value, f"`{TRANSITIONS[state, event].word}`"]
        for state in State
        for event in Event
        if (state, event) in TRANSITIONS
    ]
    return table(["from", "event", "to"], rows)


def endings() -> str:
    rows = [[f"`{each.word}`", str(each.value)] for each in Ending if each not in {Ending.NONE, Ending.ENTRUSTED}]
    return table(["status of an attempt", "stored as"], rows)


def metrics() -> str:
    rows = []
    for family in (*REGISTRY.collect(), *SEEN.collect()):
        suffix = "_total" if family.type == "counter" else ""
        labels = ", ".join(f"`{label}`" for label in labels_of(family.name))
        rows.append([f"`{family.name}{suffix}`", family.type, labels, f"{family.documentation}."])
    return table(["metric", "kind", "labels", "counts"], rows)


def labels_of(family: str) -> tuple[str, ...]:
    collectors = (*REGISTRY._collector_to_names, *SEEN._collector_to_names)
    return next(tuple(each._labelnames) for each in collectors if each._name == family)


def commands() -> str:
    return "\n".join(_section(words, command) for words, command in leaves())


def exits() -> str:
    return table(["code", "means"], [[f"`{code.value}`", meaning] for code, meaning in MEANINGS.items()])


def leaves() -> Iterator[tuple[list[str], click.Command]]:
    """Every command that does something, with the words that call it."""

    def walk(words: list[str], command: click.Command) -> Iterator[tuple[list[str], click.Command]]:
        if not isinstance(command, click.Group):
            yield words, command
            return
        context = click.Context(command, info_name=words[-1])
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from walk([*words, name], found)

    return walk(["foliot"], main)


def _section(words: list[str], command: click.Command) -> str:
    context = click.Context(command, info_name=words[-1])
    usage = [*words, *(each.make_metavar(context) for each in command.params if isinstance(each, click.Argument))]
    help_text = " ".join((command.help or "").split())
    lines = [f"### {' '.join(words)}", "", help_text, "", "```text", " ".join([*usage, "[OPTIONS]"]), "```", ""]
    if example := EXAMPLES.get(" ".join(words[1:])):
        lines += ["```console", f"$ {example}", "```", ""]
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        rows = [[f"`{_spelling(each, context)}`", _explained(each)] for each in options]
        lines += [table(["option", ""], rows)]
    return "\n".join(lines)


def _spelling(option: click.Option, context: click.Context) -> str:
    value = "" if option.is_flag else " " + option.make_metavar(context)
    if isinstance(option.type, click.IntRange | click.FloatRange):
        value = " N"
    return "`, `".join(option.opts) + value.replace("|", " or ")


def _explained(option: click.Option) -> str:
    parts = [option.help or ""]
    if isinstance(option.type, click.IntRange | click.FloatRange):
        parts.append(f"From {option.type.min} to {option.type.max}.")
    if option.show_default and option.default is not None:
        parts.append(f"Default {option.default}.")
    if option.multiple and "several times" not in parts[0]:
        parts.append("May be given several times.")
    return " ".join(filter(None, parts))


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


GENERATED: Final[dict[str, Callable[[], str]]] = {
    each.__name__: each for each in (operations, roles, states, transitions, endings, metrics, commands, exits)
}


def renewed(text: str) -> str:
    """A page with its generated regions as the code would have them."""
    return REGION.sub(lambda found: f"{found[1]} -->\n{GENERATED[found[1]]()}", text)


if __name__ == "__main__":
    for page in sorted(REFERENCE.glob("*.md")):
        page.write_text(renewed(page.read_text()))
