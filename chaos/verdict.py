"""The checker's word: counts, findings with their stories, measures, and how often each rare path was taken."""

import gc
from collections import Counter
from typing import Any, Final

import msgspec

from chaos.check import SAFETY, Case, Finding, safety_findings
from chaos.check.quality import measures
from chaos.check.rare import rare_paths
from chaos.check.targets import missed_targets
from chaos.figures import recovery
from chaos.records import Evidence
from chaos.slice import story

STORIES: Final = 5
"""Findings of each check that are told with their events; the rest are counted and named."""
NAMED: Final = 200


class Told(msgspec.Struct, kw_only=True, omit_defaults=True):
    finding: Finding
    events: list[str] = []


class Verdict(msgspec.Struct, kw_only=True):
    """What `check` found. `violations` must be 0; measures and rare paths are for the reader and the harness."""

    seed: int
    violations: int
    counts: dict[str, int]
    """Findings of every check; the S-checks are all named, with 0 where there is nothing."""
    findings: list[Told]
    measures: dict[str, dict[str, Any]]
    rare: dict[str, int]
    acknowledged: int
    """Runs and jobs that a client was told of."""
    runs: int
    effects: int
    faults: int
    unjudged: int
    """Jobs with too many unanswered calls to say anything about their instants."""

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    def to_markdown(self) -> str:
        return "\n".join([*self._head(), *self._tables(), *self._stories()]) + "\n"

    def _head(self) -> list[str]:
        return [
            f"# Verdict: {self.violations} violations, seed {self.seed}",
            "",
            f"{self.acknowledged:,} acknowledged, {self.runs:,} runs, {self.effects:,} effects, {self.faults} faults.",
        ]

    def _tables(self) -> list[str]:
        lines = ["", "| check | findings |", "|---|---|"]
        lines += [f"| {check} | {count} |" for check, count in self.counts.items()]
        lines += ["", "| rare path | times |", "|---|---|"]
        lines += [f"| {path} | {count} |" for path, count in self.rare.items()]
        lines += ["", "| measure | |", "|---|---|"]
        lines += [f"| {name} | `{msgspec.json.encode(value).decode()}` |" for name, value in self.measures.items()]
        return lines

    def _stories(self) -> list[str]:
        lines: list[str] = []
        for told in self.findings:
            finding = told.finding
            about = " ".join(name for name in (finding.run, finding.job) if name)
            lines += ["", f"## {finding.check} {finding.rule}: {about} {finding.message}"]
            if told.events:
                lines += ["", f"seed {self.seed}", "```", *told.events, "```"]
        return lines


def check(evidence: Evidence) -> Verdict:
    """Judge the evidence. Takes memory for about three times the ledger, and no other resource."""
    collecting = gc.isenabled()
    gc.disable()  # millions of records and not one cycle: collecting them would take longer than checking them
    try:
        return _check(evidence)
    finally:
        if collecting:
            gc.enable()


def _check(evidence: Evidence) -> Verdict:
    case = Case(evidence)
    measured = measures(case)
    findings = [*safety_findings(case), *missed_targets(measured, recovery(evidence))]
    return Verdict(
        seed=evidence.seed,
        violations=sum(each.violation for each in findings),
        counts=_counts(findings),
        findings=_told(case, findings),
        measures=measured,
        rare=rare_paths(case),
        acknowledged=sum(run.submission is not None for run in case.runs.values())
        + sum(None not in job.timeline.last for job in case.jobs.values()),
        runs=len(case.runs),
        effects=len(evidence.effects),
        faults=len(evidence.faults),
        unjudged=sum(not job.timeline.judged for job in case.jobs.values()),
    )


def _counts(findings: list[Finding]) -> dict[str, int]:
    counted = Counter(each.check for each in findings)
    return dict.fromkeys(SAFETY, 0) | dict(sorted(counted.items(), key=lambda item: (item[0][0] != "S", item[0])))


def _told(case: Case, findings: list[Finding]) -> list[Told]:
    seen: Counter[str] = Counter()
    told = []
    for finding in findings:
        seen[finding.check] += 1
        if seen[finding.check] <= NAMED:
            told.append(Told(finding=finding, events=story(case, finding) if seen[finding.check] <= STORIES else []))
    return told
