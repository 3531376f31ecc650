-- :name server_settings
SELECT name, setting FROM pg_settings
 WHERE name IN ('server_version_num', 'fsync', 'synchronous_commit', 'full_page_writes')

-- :name may_be_guarded
-- Whether there is a role that is bound by policies, and ours to take.
SELECT count(*) > 0 FROM pg_roles
 WHERE rolname = $1 AND NOT rolsuper AND NOT rolbypassrls AND pg_has_role(current_user, oid, 'MEMBER')
   AND has_schema_privilege(rolname, 'foliot', 'USAGE')

-- :name act_for
SELECT set_config('foliot.tenant', $1, false), set_config('statement_timeout', $2, false)

-- :name who_am_i
SELECT quote_ident(current_user)

-- :name hang_up
-- A statement has been carried out when its Execute has come, and its locks are let go when the Sync behind that has. Who
-- is cut off in between is not idle, so idle_in_transaction_session_timeout does not count, and in no statement any more,
-- so statement_timeout does not either: it keeps its locks until its client gives up (40 s), or TCP does (two hours). Seen
-- under chaos, for as long as the wire was held. COPY waits for words as well. The server's own clock dates both.
SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND usename = session_user AND application_name IN ('foliot', 'foliot handler')
   AND state = 'active' AND wait_event = 'ClientRead' AND xact_start IS NOT NULL AND query !~* '^\s*copy\M'
   AND state_change < pg_catalog.clock_timestamp() - $1::interval
