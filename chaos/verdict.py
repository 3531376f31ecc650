"""The checker's word: counts, findings with their stories, measures, and how often each rare path was taken."""

from collections import Counter
from typing import Any, Final

import msgspec

from chaos.check import SAFETY, Case, Finding, not_in_play, safety_findings
from chaos.check.quality import measures
from chaos.check.rare import rare_paths
from chaos.check.targets import missed_targets, unmeasured
from chaos.check.titles import TITLES
from chaos.records import Evidence, uncollected
from chaos.slice import story

STORIES: Final = 20
"""Findings of each check that are told with their events; the rest are counted and named."""
NAMED: Final = 200


class Told(msgspec.Struct, kw_only=True, omit_defaults=True):
    finding: Finding
    events: list[str] = []

    def title(self) -> str:
        finding = self.finding
        about = " ".join(name for name in (finding.run, finding.job, finding.message) if name)
        return f"{finding.check} {finding.rule}: {about}"


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
    jobs: int
    unjudged: int
    """Jobs with too many unanswered calls to say anything about their instants."""
    idle: list[str] = []
    """Checks that had nothing to look at."""

    @property
    def missed(self) -> list[str]:
        """Targets of quality that were not met, in words."""
        return [f"{each.finding.check} {each.finding.message}" for each in self.findings if not each.finding.violation]

    @property
    def unmeasured(self) -> list[str]:
        """Measures with a target that had nothing to go by, in words."""
        return list(unmeasured(self.measures))

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    def to_markdown(self, commit: str = "") -> str:
        return "\n".join([*self._head(), *self._tables(), *self.stories(commit)]) + "\n"

    def stories(self, commit: str = "") -> list[str]:
        """Each finding with its events, and what it takes to see it again."""
        whence = f"seed {self.seed}, commit {commit}" if commit else f"seed {self.seed}"
        lines: list[str] = []
        for told in self.findings:
            lines += ["", f"## {told.title()}", "", whence]
            if told.events:
                lines += ["```", *told.events, "```"]
        return lines

    def _head(self) -> list[str]:
        counted = f"{self.acknowledged:,} acknowledged, {self.runs:,} runs, {self.effects:,} effects"
        unsure = f"{self.faults} faults; the instants of {self.unjudged} of {self.jobs} jobs could not be judged."
        return [f"# Verdict: {self.violations} violations, seed {self.seed}", "", f"{counted}, {unsure}"]

    def _tables(self) -> list[str]:
        lines = ["", "| check | | findings |", "|---|---|---|"]
        lines += [f"| {name} | {TITLES[name]} | {self._found(name)} |" for name in self.counts]
        lines += ["", "| rare path | times |", "|---|---|"]
        lines += [f"| {path} | {count} |" for path, count in self.rare.items()]
        lines += ["", "| measure | | |", "|---|---|---|"]
        for name, value in self.measures.items():
            lines.append(f"| {name} | {TITLES[name]} | `{msgspec.json.encode(value).decode()}` |")
        return lines

    def _found(self, name: str) -> str:
        return "not in play" if name in self.idle else str(self.counts[name])


@uncollected
def check(evidence: Evidence) -> Verdict:
    """Judge the evidence. Takes memory for about three times the ledger, and no other resource."""
    case = Case(evidence)
    measured = measures(case)
    findings = [*safety_findings(case), *missed_targets(measured)]
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
        jobs=len(case.jobs),
        unjudged=sum(not job.timeline.judged for job in case.jobs.values()),
        idle=not_in_play(case),
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
