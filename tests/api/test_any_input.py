"""Whatever is sent, the answer is about what was sent: never an error of ours."""

import json
from typing import Any
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.calling import Caller
from foliot.wire.jobs import JobBody
from foliot.wire.runs import RunBody

# The database is made once and used by all examples: they need not be apart.
MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

TEXTS = st.text() | st.sampled_from(["", "\0", "f", "http://127.0.0.1/", "http://0x7f.1", "PT1S", "P1M", "* * * * *"])
INSTANTS = st.datetimes().map(lambda at: at.isoformat() + "Z") | st.sampled_from(["0001-01-01T00:00:00+23:59"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | INSTANTS
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)
PARAMETERS = st.sampled_from(["status", "state", "name", "label", "scheduleType", "job", "limit", "cursor", "other"])
HANDLERS = st.sampled_from(["noop", "http://127.0.0.1/", {"type": "function", "name": "f"}]) | ANYTHING


def bodies(fields: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Mostly right: the names are known, the values may be anything."""
    return st.dictionaries(st.sampled_from(fields), ANYTHING, max_size=4)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    return {"name": "x", "handler": draw(HANDLERS), **draw(bodies(JobBody.__struct_encode_fields__))}


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    return {"handler": draw(HANDLERS), **draw(bodies(RunBody.__struct_encode_fields__))}


@MANY
@given(body=jobs() | ANYTHING)
async def test_no_job_breaks_the_api(api: Caller, body: Any):
    answer = await api.post("/v1/jobs", raw=json.dumps(body).encode())
    assert answer.status in {201, 400, 409, 422}, answer.content


@MANY
@given(body=runs() | ANYTHING)
async def test_no_run_breaks_the_api(api: Caller, body: Any):
    answer = await api.post("/v1/runs", raw=json.dumps(body).encode())
    assert answer.status in {201, 400, 422}, answer.content


@MANY
@given(body=bodies(JobBody.__struct_encode_fields__))
async def test_no_change_breaks_the_api(api: Caller, body: Any):
    made = await api("PUT", "/v1/jobs/by-key/the-one", {"name": "x", "handler": "f", "every": 60})
    answer = await api("PATCH", f"/v1/jobs/{made.json['jobId']}", raw=json.dumps(body).encode())
    assert answer.status in {200, 400, 409, 422}, answer.content
    assert (await api.get(f"/v1/jobs/{made.json['jobId']}")).status == 200


@MANY
@given(raw=st.binary())
async def test_no_bytes_break_the_api(api: Caller, raw: bytes):
    for address in ("/v1/jobs", "/v1/jobs:batch", "/v1/runs", "/v1/runs:batch"):
        assert (await api.post(address, raw=raw)).status in {400, 422}


@MANY
@given(query=st.dictionaries(PARAMETERS, st.text(), max_size=3))
async def test_no_query_breaks_the_api(api: Caller, query: dict[str, str]):
    for address in ("/v1/jobs", "/v1/runs"):
        text = urlencode(query, errors="surrogatepass")
        assert (await api.get(f"{address}?{text}")).status in {200, 400, 422}
