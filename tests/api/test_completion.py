"""Saying later how an attempt ended: the token of its call is all it takes."""

from datetime import timedelta

from api.calling import Caller
from foliot.domain.ids import encode
from foliot.domain.outcome import Outcome
from foliot.store import outside
from world import World


async def test_whoever_was_called_ends_the_run_with_nothing_but_the_token(world: World, api: Caller):
    await world.submit(1)
    worker = await world.worker()
    (run,) = await worker.claim()
    await worker.conclude([run], Outcome.entrusted(timedelta(hours=1)))
    token = (await outside.voucher_of(world.database, worker.id)).token(run.id, run.tenant, run.fence)
    nobody, address = Caller(api.app, None), f"/v1/runs/{encode('run', run.id)}"
    shown = (await api.get(address)).json
    assert shown["status"] == "running"
    assert shown["completeBy"] > shown["startedAt"]
    wrong = await nobody.post(f"{address}:complete", {"outcome": "done"}, authorization=f"Bearer {token}")
    assert (wrong.status, wrong.field) == (422, "outcome")
    body = {"outcome": "succeeded", "result": {"rows": 7}}
    first, second = [await nobody.post(f"{address}:complete", body, authorization=f"Bearer {token}") for _ in range(2)]
    assert (first.status, first.json) == (second.status, second.json)
    assert {name: first.json[name] for name in ("status", "runStatus", "runState")} == {
        "status": "completed",
        "runStatus": "completed",
        "runState": "succeeded",
    }
    assert (await api.get(address)).json["result"] == {"rows": 7}
    late = await nobody.post(f"{address}:complete", {"outcome": "failed"}, authorization=f"Bearer {token}")
    assert (late.status, "ended as completed" in late.json["detail"]) == (409, True)
    for shown_token in (api.key, token[:-1] + ("A" if token[-1] != "A" else "B")):
        refused = await nobody.post(f"{address}:complete", body, authorization=f"Bearer {shown_token}")
        assert (refused.status, refused.json["hint"][:4]) == (401, "send")
    assert (await api.get("/v1/signing-secret")).json["secret"].startswith("whsec_")
