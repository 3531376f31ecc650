"""`foliot tenant rate`, `foliot tenant quota` and `foliot key rate`: beside the database, and from afar."""

from cli.conftest import Shell
from cli.test_keys import either

__all__ = ["either"]


async def test_a_tenants_rate_is_set_shown_and_taken_away(either: Shell):
    said = await either("tenant", "rate", "acme", "50", "--burst", "200")
    assert "tenant acme calls at most 50 times a second, 200 at once" in said
    assert (await either.json("tenant", "rate", "acme"))["limits"]["rateLimit"] == {"perSecond": 50, "burst": 200}
    assert "as fast as FOLIOT_TENANT_RATE allows" in await either("tenant", "rate", "acme", "--off")
    assert "either PER_SECOND or --off" in await either("tenant", "rate", "acme", "5", "--off", code=2)
    assert "a rate of 0 cannot be" in await either("tenant", "rate", "acme", "0", code=1)
    assert "no tenant" in (await either("tenant", "rate", "nobody", "5", code=1)).replace("no such tenant", "no tenant")


async def test_quotas_are_set_shown_with_what_is_used_and_taken_away(either: Shell):
    said = await either("tenant", "quota", "acme", "--jobs", "100", "--keys", "0", "--backlog", "5000")
    assert "jobs                  0 of 100" in said
    assert "keys        more than 0 of 0" in said
    assert "backlog               0 of 5,000" in said
    assert "schedules    any number" in said
    found = await either.json("tenant", "quota", "acme", "--jobs", "none", "--backlog", "none")
    assert (found["quotas"]["jobs"], found["quotas"]["keys"], found["limits"]["backlog"]) == (None, 0, None)
    assert "neither a whole number nor `none`" in await either("tenant", "quota", "acme", "--jobs", "x", code=2)


async def test_a_keys_rate_is_set_shown_and_taken_away(either: Shell):
    made = await either.json("key", "create", "acme", "--name", "ci")
    assert "calls at most 5 times a second, 5 at once" in await either("key", "rate", made["keyId"], "5")
    assert (await either.json("key", "rate", made["keyId"]))["rateLimit"] == {"perSecond": 5, "burst": 5}
    assert "as fast as its tenant" in await either("key", "rate", made["keyId"], "--off")
    assert "there is no such key" in await either("key", "rate", "key_nothing", "5", code=1)
