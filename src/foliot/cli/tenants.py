"""`foliot tenant …`: teams, their shares and their limits."""

from typing import Any

import click

from foliot.cli.keys import may_serve, show_new, through
from foliot.cli.naming import TENANT
from foliot.cli.output import Column, as_json, say, table, wants_json
from foliot.domain.access import AT_THE_DATABASE, NewKey, Role
from foliot.domain.limits import HIGHEST
from foliot.kit.settings import Settings
from foliot.sdk.client import Foliot
from foliot.store.database import Database

_COLUMNS = (
    Column("tenant", "TENANT", shrinks=True),
    Column("weight", "WEIGHT"),
    Column("limit", "AT ONCE"),
    Column("going", "GOING"),
    Column("waiting", "WAITING"),
)


@click.group()
def tenant() -> None:
    """Teams that own jobs."""


@tenant.command("create")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([each.value for each in Role]),
    default=Role.ADMIN.value,
    show_default=True,
    help="Of the first key.",
)
@may_serve
@wants_json
@click.pass_obj
def create_tenant(settings: Settings, name: str, role: str, serves: tuple[str, ...], json: bool) -> None:
    """Create a tenant and its first key. The key is shown only now."""
    from foliot.services.keys import created
    from foliot.services.tenants import FIRST_KEY, Tenants

    async def here(database: Database) -> Any:
        token, key = await Tenants(database).found(name, NewKey(FIRST_KEY, Role(role), serves=serves))
        return created(key, token)

    def remotely(client: Foliot) -> dict[str, Any]:
        made: dict[str, Any] = client.create_tenant(name, role=role, serves=[*serves]).key
        return made

    made = through(settings, remotely, here)
    if not json:
        say(f"created tenant {name}")
    show_new(made, json)


@tenant.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
@click.pass_obj
def list_tenants(settings: Settings, limit: int, json: bool) -> None:
    """List tenants by name: their shares, their limits, and who waits for them."""
    from foliot.services.tenants import Tenants, view

    async def here(database: Database) -> Any:
        return [view(row) for row in await Tenants(database).seen_by(AT_THE_DATABASE, after="", limit=limit)]

    found = through(settings, lambda client: [each.values for each in client.tenants(limit=limit)], here)
    if json:
        as_json(found)
    else:
        rows = [{**each, "limit": each["limits"]["concurrency"]} for each in found]
        table(rows, _COLUMNS, empty="no tenants yet: `foliot tenant create NAME` makes one")


@tenant.command("weight")
@click.argument("name", type=TENANT)
@click.argument("weight", type=click.IntRange(1, 1000), required=False)
@wants_json
@click.pass_obj
def weigh_tenant(settings: Settings, name: str, weight: int | None, json: bool) -> None:
    """Set a tenant's share against the other tenants, from 1 to 1000; without WEIGHT, show it.

    A tenant of weight 3 gets three times what one of weight 1 gets while both have work. What is queued already is
    moved accordingly, by a scheduler.
    """
    from foliot.services.tenants import Tenants

    async def here(database: Database) -> Any:
        tenants = Tenants(database)
        found = await (tenants.weight(name) if weight is None else tenants.set_weight(name, weight))
        return {"tenant": name, "weight": found.weight, "moving": found.is_moving}

    def remotely(client: Foliot) -> dict[str, Any]:
        found = client.get_tenant(name) if weight is None else client.change_tenant(name, weight=weight)
        return {"tenant": name, "weight": found.weight}

    found = through(settings, remotely, here)
    if json:
        as_json(found)
    else:
        moving = "; what is queued is being moved" if found.get("moving") else ""
        say(f"tenant {name} weighs {found['weight']}{moving}")


@tenant.command("limit")
@click.argument("name", type=TENANT)
@click.argument("limit", type=click.IntRange(1, HIGHEST), required=False)
@click.option("--off", is_flag=True, help="Take the limit away.")
@wants_json
@click.pass_obj
def limit_tenant(settings: Settings, name: str, limit: int | None, off: bool, json: bool) -> None:
    """Set how many runs of a tenant go at once, over all its jobs; without LIMIT, show it and how it stands.

    Whoever waits goes by the new limit at once. Runs that were ready or running before there was one are not counted.
    """
    from foliot.services.tenants import Tenants, view

    if off and limit is not None:
        raise click.UsageError("either LIMIT or --off")

    async def here(database: Database) -> Any:
        tenants = Tenants(database)
        return view(await (tenants.set_limit(name, limit) if off or limit else tenants.read(name)))

    def remotely(client: Foliot) -> dict[str, Any]:
        changed = client.limit_tenant(name, concurrency=limit) if off or limit else client.get_tenant(name)
        return changed.values

    found = through(settings, remotely, here)
    most, going, waiting = found["limits"]["concurrency"], found["going"], found["waiting"]
    if json:
        as_json({"tenant": name, "limit": most, "going": going, "waiting": waiting})
    elif most is None:
        say(f"tenant {name} has no limit")
    else:
        say(f"tenant {name}: at most {most:,} at once; {going:,} go, {waiting:,} wait")
