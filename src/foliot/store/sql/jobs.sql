-- :name job_names
SELECT id, name FROM job WHERE id = ANY ($1::bigint[])
