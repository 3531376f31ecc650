"""Keys and tenants by both clients."""

import pytest

from foliot.sdk import Foliot
from foliot.sdk.errors import ApiError
from sdk.serving import Served
from sdk.test_clients import away


async def test_keys_and_tenants_are_looked_after_by_both_clients(foliot: Served):
    client = foliot.client()
    made = await away(client.create_key, "ci", role="viewer", expires_in="P30D")
    viewer = Foliot(foliot.url, made.key)
    assert list(await away(viewer.list_jobs)) == []
    with pytest.raises(ApiError, match="has not the scope runs:write") as refused:
        await away(viewer.submit, "noop")
    assert refused.value.status == 403
    assert "editor" in refused.value.hint
    assert [each.key_id for each in await away(client.keys, name="ci", limit=1)] == [made.key_id]
    assert (await away(client.create_tenant, "growth", serves=["mail"])).key["tenant"] == "growth"
    async with foliot.aio() as aio:
        rotated = await aio.rotate_key(made.key_id, overlap="PT1H")
        assert rotated.former["keyId"] == made.key_id
        assert (await aio.revoke_key(made.key_id)).status == "revoked"
        assert (await aio.get_key(made.key_id)).role == "viewer"
        again = await aio.create_key("other", scopes=["runs:write"])
        assert again.scopes == ["runs:write"]
        assert [each.tenant for each in await aio.tenants()] == ["acme", "growth"]
        assert (await aio.create_tenant("sales")).key["role"] == "admin"
        assert len(await aio.keys()) == 4
    assert [each.tenant for each in await away(client.tenants, limit=1)] == ["acme"]
    assert (await away(client.get_key, made.key_id)).status == "revoked"
    await away(client.revoke_key, rotated.key["keyId"])
    assert (await away(client.rotate_key, again.key_id)).key["name"] == "other"
