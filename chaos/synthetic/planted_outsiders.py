"""Planted faults of keys that stand for one request, of addresses that are denied, and of secrets."""

from chaos.check.forbidden import REFUSED
from chaos.oracle import seconds
from chaos.records import CONFIDED, Effect, Operation, Outcome, Phase, digest
from chaos.synthetic.surgery import Row, Surgery, plant


def _refused(it: Surgery) -> Operation:
    return next(each for each in it.evidence.operations if each.status == 422)


@plant("S33 another request is taken for the first")
def _(it: Surgery) -> None:
    other = _refused(it)
    first = next(each for each in it.answered("createRun") if each.key == other.key)
    other.outcome, other.status, other.answer = Outcome.OK, 201, first.answer


@plant("S33 refused as if something else was wrong")
def _(it: Surgery) -> None:
    _refused(it).status = 409


@plant("S34 called although it is denied")
def _(it: Surgery) -> None:
    attempt = next(row for rows in it.dump.attempts.values() for row in rows if row.get("errorClass") == REFUSED)
    made = it.submissions()[attempt["runId"]]
    told = {"tenant": made.tenant, "run": attempt["runId"], "attempt": 1, "fence": attempt["fence"], "worker": ""}
    at, payload = seconds(attempt["startedAt"]), digest((made.body or {})["payload"])
    it.add(Effect(seq=0, at=at, phase=Phase.START, payload=payload, nonce="heard", **told))


def _given(it: Surgery, status: str) -> Row:
    return next(row for row in it.runs() if row["status"] == status and _is_given(it, row))


def _is_given(it: Surgery, row: Row) -> bool:
    made = it.submissions().get(row["runId"])
    return made is not None and "secret" in (made.body or {})["payload"]


@plant("S35 a secret in a result")
def _(it: Surgery) -> None:
    _given(it, "completed")["result"] = {"said": f"{CONFIDED}1"}


@plant("S35 a secret in the error of an attempt")
def _(it: Surgery) -> None:
    it.attempts(_given(it, "failed"))[0]["errorMessage"] = f"was told {CONFIDED}1"


@plant("S35 a secret in a table")
def _(it: Surgery) -> None:
    it.dump.let_out = {"foliot.history": 2}


@plant("S35 a secret in a log")
def _(it: Surgery) -> None:
    it.evidence.overheard = {"worker-1": 1}
