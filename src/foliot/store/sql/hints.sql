-- :name notify
-- Not waited for until it is on disk: a hint does not outlive the server in any case.
SELECT pg_notify($1, ''), set_config('synchronous_commit', 'off', true)

-- :name sign_of_life
SELECT 1
