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
