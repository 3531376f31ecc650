-- :name foliot_first
-- The settlement speaks of Foliot's tables, and wants the plans of the hot lines; the handler had a search path of its
-- own, which triggers that wait for the commit may need. From here on it holds rows that others wait for, its claim with
-- all the runs in it first of all: a worker that is cut off now keeps them no longer than any other line would ($1).
SELECT current_setting('search_path') AS before, set_config('search_path', 'foliot', true),
       set_config('idle_in_transaction_session_timeout', $1, true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true)

-- :name search_as_before
SELECT set_config('search_path', $1, true)

-- :name give_up_after
-- A process that stands still in mid-transaction keeps its locks no longer than the attempt may take.
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
