-- :name server_settings
SELECT name, setting FROM pg_settings
 WHERE name IN ('server_version_num', 'fsync', 'synchronous_commit', 'full_page_writes')
