"""A caller for the clients of the chaos runs: carries out nothing, writes down what it was asked for."""

from typing import Any

from chaos.records import Operation, Outcome


class Notebook:
    """Everything comes out the same; who is told that it went well gets names for what it asked for."""

    def __init__(self, outcome: Outcome = Outcome.OK) -> None:
        self.calls: list[Operation] = []
        self._outcome = outcome

    async def call(self, kind: str, *, before: Operation | None = None, **given: Any) -> Operation:
        number = len(self.calls) + 1
        done = Operation(number=number, kind=kind, invoked=0, completed=0, outcome=self._outcome, status=200, **given)
        if self._outcome is Outcome.OK:
            body = done.body or {}
            done.answer = {"jobId": f"job_{number}", "runId": f"run_{number}"}
            done.answer["jobIds"] = [f"job_{number}.{place}" for place, _ in enumerate(body.get("jobs", ()))]
            done.answer["runIds"] = [f"run_{number}.{place}" for place, _ in enumerate(body.get("runs", ()))]
        self.calls.append(done)
        return done

    async def insist(
        self,
        client: int,
        tenant: str,
        kind: str,
        job: str | None,
        body: dict[str, Any] | None = None,
        key: str | None = None,
        run: str | None = None,
    ) -> Operation:
        return await self.call(kind, client=client, tenant=tenant, job=job, body=body, key=key, run=run)

    async def read(self, _tenant: str, path: str, **_: Any) -> Any:
        raise AssertionError(f"there is nothing to read, and {path} was asked for")

    def bodies(self, kind: str, of: str) -> list[dict[str, Any]]:
        """What was asked for, one by one, by calls of this kind."""
        asked = [each.body or {} for each in self.calls if each.kind == kind]
        return [each for body in asked for each in body.get(of, [body])]
