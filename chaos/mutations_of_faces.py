"""Mutants of what holds at the door: keys, versions, the audit trail, quotas, encryption, and what may go out."""

from typing import Final

from chaos.mutant import Edit, Mutant, burst

_STRIKES: Final = [burst((0.0, "kill", "worker-0"), (6.0, "kill", "scheduler-1"))]
_SECONDS: Final = 25.0

_KEY_BELIEVED = Mutant(
    "key-believed",
    "a process that has let in a key once believes in it for ever",
    (
        Edit(
            "services/tenants.py",
            "if (known := self._known.get(read.digest)) and now < known[0]:",
            "if known := self._known.get(read.digest):",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_EXPIRY_FORGOTTEN = Mutant(
    "expiry-forgotten",
    "a key that was replaced by another goes on",
    (
        Edit(
            "store/sql/keys.sql",
            " WHERE api_key.id = $1 AND api_key.revoked_at IS NULL\n"
            "   AND (api_key.expires_at IS NULL OR api_key.expires_at > clock_timestamp())\n",
            " WHERE api_key.id = $1 AND api_key.revoked_at IS NULL\n",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_ROLE_IGNORED = Mutant(
    "role-ignored",
    "nobody asks whether a key's role reaches as far as what is asked for",
    (Edit("api/endpoint.py", "if scope is not None and scope not in caller.scopes:", "if False:"),),
    _STRIKES,
    _SECONDS,
)
_ROLE_GIVEN = Mutant(
    "role-given",
    "who makes a key gives it any role, as long as it has the scopes itself",
    (Edit("domain/access.py", "if new.role.is_above(authority.role):", "if False:"),),
    _STRIKES,
    _SECONDS,
)
_TENANT_UNSCOPED = Mutant(
    "tenant-unscoped",
    "whoever may look after keys looks after those of every tenant",
    (
        Edit(
            "domain/access.py",
            "return self.role is Role.OPERATOR or self.tenant == tenant",
            "return True",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_VERSION_IGNORED = Mutant(
    "version-ignored",
    "a change is made whatever version it was meant for",
    (
        Edit(
            "api/jobs.py",
            "            call.condition.check(row.version)\n            body = merged(row, call.raw)\n",
            "            body = merged(row, call.raw)\n",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_VERSION_ASKED_ONCE = Mutant(
    "version-asked-once",
    "the version is looked at before the lock, and not again if somebody else was first",
    (
        Edit(
            "api/jobs.py",
            "        def edited(row: JobRow) -> Draft:\n            call.condition.check(row.version)\n",
            "        asked = []\n\n"
            "        def edited(row: JobRow) -> Draft:\n"
            "            if not asked:\n"
            "                call.condition.check(row.version)\n"
            "            asked.append(row)\n",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_CHANGE_UNTOLD = Mutant(
    "change-untold",
    "the audit trail tells of new jobs and of their ends, and not of changes between",
    (Edit("services/control/__init__.py", "                    await _note(connection, before, after)\n", ""),),
    _STRIKES,
    _SECONDS,
)
_TOLD_APART = Mutant(
    "told-apart",
    "a change is told in a transaction of its own, before it is made",
    (
        Edit(
            "services/control/__init__.py",
            "            (spec,) = await self._intern(tenant, [draft])\n"
            "            async with self._database.transaction() as connection:\n"
            "                await respect_quota(connection, tenant, **counted_more(before, draft))\n",
            "            (spec,) = await self._intern(tenant, [draft])\n"
            "            async with self._database.transaction() as connection:\n"
            "                await _note(connection, before, before)\n"
            "            async with self._database.transaction() as connection:\n"
            "                await respect_quota(connection, tenant, **counted_more(before, draft))\n",
        ),
        Edit("services/control/__init__.py", "                    await _note(connection, before, after)\n", ""),
    ),
    _STRIKES,
    _SECONDS,
)
_CHAIN_UNLINKED = Mutant(
    "chain-unlinked",
    "an entry is sealed by itself, whatever stands before it",
    (
        Edit(
            "domain/audit.py",
            "hashlib.sha256(self.hash + entry.canonical()).digest()",
            "hashlib.sha256(entry.canonical()).digest()",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_QUOTA_UNLOCKED = Mutant(
    "quota-unlocked",
    "who adds to what a quota counts does not keep others from doing so",
    (
        Edit(
            "store/sql/terms.sql",
            "(most_jobs IS NOT NULL OR most_schedules IS NOT NULL OR most_keys IS NOT NULL)\n   FOR NO KEY UPDATE\n",
            "(most_jobs IS NOT NULL OR most_schedules IS NOT NULL OR most_keys IS NOT NULL)\n",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_REFUSED_TOO_LATE = Mutant(
    "refused-too-late",
    "a job is refused by its tenant's quota when it has been made",
    (
        Edit(
            "services/control/__init__.py",
            "                await respect_quota(connection, asked.tenant, **counted(drafts))\n",
            "",
        ),
        Edit(
            "services/control/__init__.py",
            "await sealed_answer(self._vault, asked.tenant, asked.key, body))\n            return body\n",
            "await sealed_answer(self._vault, asked.tenant, asked.key, body))\n"
            "            async with self._database.transaction() as connection:\n"
            "                await respect_quota(connection, asked.tenant, **counted(drafts))\n"
            "            return body\n",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_PACE_IGNORED = Mutant(
    "pace-ignored",
    "a key is not held up, however fast it calls",
    (Edit("services/pacing.py", "        if wait := max(waits):\n", "        if (wait := max(waits)) < 0:\n"),),
    _STRIKES,
    _SECONDS,
)
_WRITTEN_PLAIN = Mutant(
    "written-plain",
    "payloads of a tenant that encrypts are written as they come",
    (
        Edit(
            "store/vault.py",
            'self._sealing = {row["id"]: row["sealed_with"] for row in rows}',
            "self._sealing = {}",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_FINGERPRINT_IGNORED = Mutant(
    "fingerprint-ignored",
    "whoever shows a key is given its first answer, whatever is asked for",
    (Edit("store/submission.py", "    if first.fingerprint != fingerprint:\n", "    if False:\n"),),
    _STRIKES,
    _SECONDS,
)
_GUARD_OFF = Mutant(
    "guard-off",
    "no address is asked about before it is called",
    (
        Edit(
            "kit/outbound.py", "    if (reason := judge(host, port, address)) is not None:\n", '    if reason := "":\n'
        ),
    ),
    _STRIKES,
    _SECONDS,
)
_SECRETS_KEPT = Mutant(
    "secrets-kept",
    "what a handler answers is kept as it is, with the secrets that it was given",
    (Edit("worker/secrets.py", "    return hushed(answer, redaction)\n", "    return answer\n"),),
    _STRIKES,
    _SECONDS,
)
_SECRETS_LOGGED = Mutant(
    "secrets-logged",
    "a worker's log shows the secrets of what it runs",
    (
        Edit(
            "kit/telemetry.py",
            "_harmless(HUSH.hide(super().format(record)))",
            "_harmless(super().format(record))",
        ),
    ),
    _STRIKES,
    _SECONDS,
)
OF_FACES: Final = (
    _KEY_BELIEVED,
    _EXPIRY_FORGOTTEN,
    _ROLE_IGNORED,
    _ROLE_GIVEN,
    _TENANT_UNSCOPED,
    _VERSION_IGNORED,
    _VERSION_ASKED_ONCE,
    _CHANGE_UNTOLD,
    _TOLD_APART,
    _CHAIN_UNLINKED,
    _QUOTA_UNLOCKED,
    _REFUSED_TOO_LATE,
    _PACE_IGNORED,
    _WRITTEN_PLAIN,
    _FINGERPRINT_IGNORED,
    _GUARD_OFF,
    _SECRETS_KEPT,
    _SECRETS_LOGGED,
)
