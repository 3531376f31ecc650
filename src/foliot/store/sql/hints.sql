-- :name notify
-- One commit for all of them: each holds a lock of the whole server. Not waited for until it is on disk: a hint does not
-- outlive the server in any case.
SELECT pg_notify(channel, ''), set_config('synchronous_commit', 'off', true) FROM unnest($1::text[]) AS channel

-- :name sign_of_life
SELECT 1
