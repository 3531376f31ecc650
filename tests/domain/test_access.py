"""Roles, scopes, and who may hand them on."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.access import (
    GRANTS,
    Authority,
    NewKey,
    Role,
    Scope,
    check_may,
    check_may_give,
    check_may_touch,
    check_serves,
    parse_role,
    parse_scopes,
    scopes_of,
)
from foliot.domain.errors import Forbidden, InvalidField

ROLES = st.sampled_from(Role)
NARROWED = st.none() | st.lists(st.sampled_from(Scope), unique=True)
SERVES = st.sampled_from([[], ["mail"], ["*"]])


def test_each_role_may_all_that_the_one_before_may_and_more():
    steps = [GRANTS[role] for role in Role]
    assert all(lower < higher for lower, higher in pairwise(steps))
    assert GRANTS[Role.OPERATOR] == frozenset(Scope) - {Scope.WORK}


def test_only_reading_is_a_viewers_and_nothing_of_all_tenants_is_an_admins():
    assert all(scope.endswith(":read") for scope in GRANTS[Role.VIEWER])
    assert not {Scope.FLEET_READ, Scope.FLEET_WRITE, Scope.TENANTS_WRITE} & GRANTS[Role.ADMIN]


@given(ROLES, NARROWED, SERVES)
def test_scopes_narrow_a_role_and_work_comes_with_queues_only(
    role: Role, narrowed: list[Scope] | None, serves: list[str]
):
    found = scopes_of(role, narrowed, serves)
    assert found - {Scope.WORK} <= GRANTS[role]
    assert narrowed is None or found - {Scope.WORK} <= set(narrowed)
    assert (Scope.WORK in found) == bool(serves)


@given(ROLES, NARROWED, ROLES, NARROWED, SERVES)
def test_nobody_gives_what_they_have_not(
    giver: Role, has: list[Scope] | None, role: Role, narrowed: list[Scope] | None, serves: list[str]
):
    authority = Authority(1, giver, scopes_of(giver, has, ["*"]))
    new = NewKey("new", role, narrowed, serves)
    enough = new.may - {Scope.WORK} <= authority.scopes and list(Role).index(role) <= list(Role).index(giver)
    if enough and (not serves or Scope.FLEET_WRITE in authority.scopes):
        check_may_give(new, authority)
        for tenant in (1, 2):  # and what was given reaches no further than who gave it
            assert authority.reaches(tenant) or not Authority(1, role, new.may).reaches(tenant)
    else:
        with pytest.raises(Forbidden):
            check_may_give(new, authority)


@given(ROLES, ROLES)
def test_a_key_of_a_role_above_ones_own_is_not_ones_to_change(theirs: Role, own: Role):
    authority = Authority(1, own, frozenset(Scope))
    if list(Role).index(theirs) <= list(Role).index(own):
        check_may_touch(theirs, authority)
    else:
        with pytest.raises(Forbidden, match="'s key"):
            check_may_touch(theirs, authority)


@pytest.mark.parametrize("scope", Scope)
def test_who_lacks_a_scope_is_told_which_and_who_has_it(scope: Scope):
    with pytest.raises(Forbidden) as refused:
        check_may(scope, Authority(1, Role.VIEWER, frozenset()))
    assert scope in refused.value.message
    having = {role for role in Role if scope in GRANTS[role]}
    told = refused.value.hint.split(" have it")[0].split()
    assert having == set(told) & set(Role) if having else "--serve" in refused.value.hint
    check_may(scope, Authority(1, Role.VIEWER, frozenset({scope})))


def test_words_that_mean_nothing_are_refused():
    assert parse_role("viewer") is Role.VIEWER
    assert parse_scopes(Role.EDITOR, ["runs:write", "runs:write"]) == [Scope.RUNS_WRITE]
    for call in (
        lambda: parse_role("root"),
        lambda: parse_scopes(Role.EDITOR, ["runs:erase"]),
        lambda: parse_scopes(Role.VIEWER, ["runs:write"]),
        lambda: parse_scopes(Role.OPERATOR, ["work"]),
        lambda: check_serves([""]),
        lambda: check_serves(["a\0"]),
    ):
        with pytest.raises(InvalidField) as refused:
            call()
        assert refused.value.hint


def test_an_operator_reaches_every_tenant_and_nobody_else_another():
    assert Authority(1, Role.OPERATOR, frozenset()).reaches(2)
    assert Authority(1, Role.ADMIN, frozenset()).reaches(1)
    assert not Authority(1, Role.ADMIN, frozenset()).reaches(2)
