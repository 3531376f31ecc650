"""`foliot tenant rate`, `foliot tenant quota`, `foliot key rate`: how fast callers may call, and what they may have."""

from typing import Any, Final

import click

from foliot.cli.keys import key, through
from foliot.cli.output import as_json, say, wants_json
from foliot.cli.tenants import tenant
from foliot.domain.access import AT_THE_DATABASE
from foliot.domain.bucket import RateLimit, rate_limit
from foliot.domain.terms import Quota, Terms, check_backlog, check_owned
from foliot.kit.settings import Settings
from foliot.sdk.client import Foliot
from foliot.store.database import Database

NONE: Final = "none"


class _Number(click.ParamType[Any]):
    """A whole number, or `none` for no limit."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NONE or isinstance(value, int):
            return value
        if not (value.isascii() and value.isdigit()):
            self.fail(f"{value!r} is neither a whole number nor `{NONE}`", param, ctx)
        return int(value)


per_second = click.argument("per_second", metavar="PER_SECOND", type=float, required=False)
burst = click.option(
    "--burst", type=click.IntRange(1), help="So many at once after a silence; without, what one second brings."
)
off = click.option("--off", is_flag=True, help="Take the limit away.")


@tenant.command("rate")
@click.argument("name")
@per_second
@burst
@off
@wants_json
@click.pass_obj
def rate_tenant(
    settings: Settings, name: str, per_second: float | None, burst: int | None, off: bool, json: bool
) -> None:
    """Set how fast a tenant may call, over all its keys; without PER_SECOND, show it.

    Each run and each job that a call hands in counts. Faster calls are answered with 429. API processes go by it within
    5 seconds.
    """
    _change(settings, name, *_limit(per_second, burst, off), json)


@tenant.command("quota")
@click.argument("name")
@click.option("--jobs", type=_Number(), help="Jobs on demand or on a schedule.")
@click.option("--schedules", type=_Number(), help="Of these, jobs on a schedule.")
@click.option("--keys", type=_Number(), help="Keys that are active.")
@click.option("--backlog", type=_Number(), help="Runs that may wait before no more are taken.")
@wants_json
@click.pass_obj
def quota_tenant(settings: Settings, /, name: str, json: bool, **given: Any) -> None:
    """Set how many of what a tenant may have (`none` for no limit); without options, show it and what it has.

    Whoever has more already keeps it, and gets no more.
    """
    asked = {what: None if most == NONE else most for what, most in given.items() if most is not None}
    for what, most in asked.items():
        if most is not None:
            check_backlog(most) if what == "backlog" else check_owned(what, most)
    limits = {"backlog": asked.pop("backlog")} if "backlog" in asked else {}
    _change(settings, name, limits, asked, json)


@key.command("rate")
@click.argument("key_id", metavar="KEY")
@per_second
@burst
@off
@wants_json
@click.pass_obj
def rate_key(
    settings: Settings, key_id: str, per_second: float | None, burst: int | None, off: bool, json: bool
) -> None:
    """Set how fast a key may call, within what its tenant may; without PER_SECOND, show it."""
    from foliot.services.keys import Keys
    from foliot.services.terms import TermsKeeper

    limits, _ = _limit(per_second, burst, off)

    async def here(database: Database) -> Any:
        if limits:
            await TermsKeeper(database).change_key(AT_THE_DATABASE, key_id, limits["rate_limit"])
        return await Keys(database).read(AT_THE_DATABASE, key_id)

    def remotely(client: Foliot) -> dict[str, Any]:
        return (client.limit_key(key_id, rate_limit=limits["rate_limit"]) if limits else client.get_key(key_id)).values

    found = through(settings, remotely, here)
    if json:
        as_json(found)
    else:
        say(f"{found['keyId']} {found['name']!r} calls {_rate(found['rateLimit'], 'as fast as its tenant')}")


def _limit(per_second: float | None, burst: int | None, off: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the words on the command line change: limits, and quotas (none)."""
    if off and (per_second is not None or burst is not None):
        raise click.UsageError("either PER_SECOND or --off")
    if burst is not None and per_second is None:
        raise click.UsageError("--burst goes with PER_SECOND")
    if off:
        return {"rate_limit": None}, {}
    return ({} if per_second is None else {"rate_limit": rate_limit(per_second, burst)}), {}


def _change(settings: Settings, name: str, limits: dict[str, Any], quotas: dict[str, Any], json: bool) -> None:
    """Change what is given, and show what is there then."""
    from foliot.services.tenants import Change, Tenants, view
    from foliot.services.terms import TermsKeeper
    from foliot.store.terms import sample_backlog

    def edit(before: Terms) -> Terms:
        rate: RateLimit | None = limits.get("rate_limit", before.rate)
        backlog = limits.get("backlog", before.backlog)
        return Terms(rate, backlog, Quota(**{**before.quota._asdict(), **quotas}))

    async def here(database: Database) -> Any:
        if limits or quotas:
            await Tenants(database).change(name, Change(terms=edit))
        row = await Tenants(database).read(name)
        waiting = (await sample_backlog(database)).get(row.id, 0)
        return view(row, await TermsKeeper(database).used(name, waiting))

    def remotely(client: Foliot) -> dict[str, Any]:
        changed = {**limits, "rate_limit": tuple(limits["rate_limit"])} if limits.get("rate_limit") else limits
        if limits or quotas:
            return client.change_tenant(name, quotas=quotas, **changed).values
        return client.get_tenant(name).values

    found = through(settings, remotely, here)
    if json:
        as_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    limits, used = found["limits"], found["used"]
    say(f"tenant {found['tenant']} calls {_rate(limits['rateLimit'], 'as fast as FOLIOT_TENANT_RATE allows')}")
    backlog = "what FOLIOT_TENANT_BACKLOG allows" if limits["backlog"] is None else f"{limits['backlog']:,}"
    say(f"{'backlog':10} {used['backlog']:>12,} of {backlog}")
    for what, most in found["quotas"].items():
        if most is None:
            say(f"{what:10} {'any number':>12}")
        else:
            has = f"more than {most:,}" if used[what] > most else f"{used[what]:,}"
            say(f"{what:10} {has:>12} of {most:,}")


def _rate(limit: dict[str, Any] | None, otherwise: str) -> str:
    if limit is None:
        return otherwise
    return f"at most {limit['perSecond']:,g} times a second, {limit['burst']:,} at once"
