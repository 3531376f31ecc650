-- :name notify
SELECT pg_notify($1, '')

-- :name sign_of_life
SELECT 1
