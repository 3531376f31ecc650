"""S27: what a tenant wants encrypted stands nowhere in clear text."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.finding import Finding
from chaos.records import Outcome


def clear_text(case: Case) -> Iterator[Finding]:
    for table, count in case.evidence.dump.exposed.items():
        yield Finding(check="S27", rule="clear text", message=f"{count} rows of {table} can be read by anybody")


def kept(case: Case) -> dict[str, int]:
    rotations = (each for each in case.evidence.operations if each.kind == "rotateEncryption")
    return {
        "payloads stored encrypted": case.evidence.dump.sealed,
        "data keys replaced": sum(each.outcome is Outcome.OK for each in rotations),
    }
