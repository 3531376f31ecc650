"""Chains and checkpoints: whatever is changed, taken away, put in or moved, it shows."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.audit import Checkpoint, Entry, Link, faults_of_checkpoints, faults_of_row, links

KEY = b"k" * 64
TEXTS = st.text(max_size=8) | st.none()
CHANGES = {"tenant": 2, "at": datetime(2030, 1, 1, tzinfo=UTC), "actor": "\0", "key": "\0", "ip": "\0", "request": "\0"}
CHANGES |= {"action": "\0", "subject": "\0", "before": "\0", "after": "\0"}


@st.composite
def trails(draw: st.DrawFn) -> list[Entry]:
    fields = st.fixed_dictionaries(dict.fromkeys(("key", "ip", "request", "subject", "before", "after"), TEXTS))
    start = datetime(2026, 11, 16, tzinfo=UTC)
    return [
        Entry(
            id=number,
            tenant=1,
            at=start + timedelta(microseconds=draw(st.integers(0, 10**12))),
            actor="acme",
            action="pauseJob",
            outcome=draw(st.sampled_from(["done", "denied"])),
            **draw(fields),
        )
        for number in range(1, draw(st.integers(2, 8)))
    ]


def first_fault(rows: list[tuple[Entry, Link]]) -> str | None:
    head = Link()
    for entry, told in rows:
        if fault := faults_of_row(head, entry, told):
            return fault
        head = told
    return None


@given(trails(), st.data())
def test_a_chain_is_whole_until_somebody_touches_it(entries, data):
    rows = list(zip(entries, links(Link(), entries), strict=True))
    assert first_fault(rows) is None
    place = data.draw(st.integers(0, len(rows) - 1))
    name = data.draw(st.sampled_from(sorted(CHANGES)))
    entry, link = rows[place]
    changed = msgspec.structs.replace(entry, **{name: CHANGES[name]})
    assert first_fault([*rows[:place], (changed, link), *rows[place + 1 :]])
    if place < len(rows) - 1:
        assert "is missing" in str(first_fault([*rows[:place], *rows[place + 1 :]]))
        # Sealed anew from there on, by somebody who knows how: only what was signed elsewhere tells.
        forged = [*entries[:place], changed, *entries[place + 1 :]]
        assert first_fault(list(zip(forged, links(Link(), forged), strict=True))) is None
        head = rows[-1][1]
        checkpoint = Checkpoint(1, "now", "", {"1": (head.position, head.hash.hex())}).signed(KEY)
        (*_, now) = links(Link(), forged)
        assert not list(faults_of_checkpoints([checkpoint], [KEY], {(1, head.position): head.hash}))
        assert "was rewritten" in next(faults_of_checkpoints([checkpoint], [KEY], {(1, now.position): now.hash}))


def test_two_trails_never_have_the_same_bytes():
    """A separator inside of a field would let one say what another does."""
    one = Entry(id=1, tenant=1, at=datetime(2026, 1, 1, tzinfo=UTC), actor='a","key":"b', action="x", outcome="done")
    two = msgspec.structs.replace(one, actor="a", key="b")
    assert one.canonical() != two.canonical()


def test_checkpoints_hold_each_other():
    first = Checkpoint(1, "t1", "", {"1": (5, "aa")}).signed(KEY)
    second = Checkpoint(2, "t2", first.signature, {"1": (9, "bb")}).signed(KEY)
    third = Checkpoint(3, "t3", second.signature, {"2": (1, "cc")}).signed(KEY)
    hashes = {(1, 5): b"\xaa", (1, 9): b"\xbb", (2, 1): b"\xcc"}

    def faults(*checkpoints: Checkpoint, keys: tuple[bytes, ...] = (KEY,), **changed: bytes) -> list[str]:
        return list(faults_of_checkpoints(checkpoints, keys, hashes))

    assert faults(first, second, third) == []
    assert faults(first, second, third, keys=(b"n" * 64, KEY)) == []
    assert faults(first, third) == ["checkpoint 2 is missing"]
    other = Checkpoint(2, "t2", "", second.heads).signed(KEY)
    assert faults(first, other, third) == [
        "checkpoint 2 does not follow the one before it",
        "checkpoint 3 does not follow the one before it",
    ]
    assert "checkpoint 2 is not signed with a key of ours" in faults(first, second, third, keys=())
    forged = msgspec.structs.replace(second, heads={"1": (9, "cc")})
    assert "checkpoint 2 is not signed with a key of ours" in faults(first, forged, third)
    hashes.pop((1, 9))
    assert faults(first, second, third) == [
        "the chain of tenant 1 was taken away, at or before position 9 (checkpoint 2)"
    ]
    assert Checkpoint.parse(second.body()) == second
