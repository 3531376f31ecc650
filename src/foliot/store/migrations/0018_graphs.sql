-- Graphs: jobs that wait for others (docs/why/0031-graphs.md). What is defined stands in `dependency`; what goes on stands in
-- `node`, one row for each run that waits for parents or that children wait for.

-- Which job waits for which end of which other: condition 0 success, 1 done, 2 failed. As with subscriptions, an edit at e
-- ends one row at e and begins another: instants up to e have the edges of before, fired yet or not.
CREATE TABLE dependency (
    child      bigint NOT NULL,
    parent     bigint NOT NULL,
    condition  smallint NOT NULL CHECK (condition IN (0, 1, 2)),
    place      smallint NOT NULL,                               -- in the list of its owner
    after      timestamptz NOT NULL DEFAULT '-infinity',
    until      timestamptz NOT NULL DEFAULT 'infinity',
    PRIMARY KEY (child, parent, after),
    CHECK (child <> parent),
    CHECK (until >= after)
);
CREATE INDEX dependency_of_parent ON dependency (parent);
CREATE INDEX dependency_age ON dependency (until) WHERE until < 'infinity';

-- The graph that a job is part of, if it fires or is started as a whole: known by its first root. One-time jobs have none:
-- each waits for the runs of its parents by itself.
ALTER TABLE job ADD COLUMN head bigint;
CREATE INDEX job_of_graph ON job (head) WHERE head IS NOT NULL;
ALTER TABLE subscription ADD COLUMN head bigint;
-- By schedule too, so that no statistics make the planner walk all that share the schedule for each of its graphs.
CREATE INDEX subscription_of_graph ON subscription (head, schedule, job) WHERE head IS NOT NULL;
CREATE INDEX subscription_head ON subscription (schedule, job) WHERE head = job;

-- One firing of a graph, or one start by hand. Its id is that of the run of its first root; the ids of its runs follow it
-- without a gap. `going` counts the runs that may still come to an end by themselves: at 0 the graph has ended, even if some
-- are blocked behind a dead one, and the next instant is not skipped for it.
CREATE TABLE graph_run (
    id            bigint PRIMARY KEY,
    head          bigint NOT NULL,
    tenant        integer NOT NULL,
    scheduled_at  timestamptz NOT NULL,
    exclusive     boolean NOT NULL,                             -- overlap = skip, for the graph as a whole
    going         integer NOT NULL CHECK (going >= 0),
    ended_at      timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNIQUE INDEX graph_run_alone ON graph_run (head) WHERE exclusive AND ended_at IS NULL;
CREATE INDEX graph_run_age ON graph_run (ended_at) WHERE ended_at IS NOT NULL;

-- What it looks like, kept for people: run number `id + i` is of jobs[i + 1]; edges lead from parents[i] to children[i].
CREATE TABLE graph_shape (
    id          bigint PRIMARY KEY,
    jobs        bigint[] NOT NULL,
    parents     smallint[] NOT NULL,
    children    smallint[] NOT NULL,
    conditions  smallint[] NOT NULL
);

-- state: 0 waits for its parents, 1 goes, 2 dead. A row goes when its run has ended for good: by then its children have been
-- told. `told`: that it has ended was said to those who wait for any end of it, or for its failure; a replay does not take
-- that back. `waits`: how many parents must still succeed, or end. `alarms`: how many may still fail of those of which one
-- must; null if none need to, or one has.
CREATE TABLE node (
    run         bigint PRIMARY KEY,
    graph       bigint,
    tenant      integer NOT NULL,
    state       smallint NOT NULL CHECK (state IN (0, 1, 2)),
    told        boolean NOT NULL DEFAULT false,
    waits       integer NOT NULL DEFAULT 0 CHECK (waits >= 0),
    alarms      integer CHECK (alarms >= 0),
    parents     bigint[] NOT NULL DEFAULT '{}',
    children    bigint[] NOT NULL DEFAULT '{}',
    conditions  smallint[] NOT NULL DEFAULT '{}'                -- of the edges to the children
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
-- Always empty: whoever satisfies the last edge lets the run go in the same statement.
CREATE INDEX node_left_behind ON node (run) WHERE state = 0 AND waits = 0 AND alarms IS NULL;
-- As before (see the eighth migration): this table is empty one second and full the next, too.
CREATE OR REPLACE FUNCTION lay_ballast() RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run (id, scheduled_at, due_at, tenant, spec, state, payload)
    SELECT -n, 'infinity', 'infinity', 0, 0, 2, '' FROM generate_series(1, 10000) AS n;
    INSERT INTO ready (lane, rank, run) SELECT 0, n, -n FROM generate_series(1, 10000) AS n;
    INSERT INTO timer (id, scheduled_at, due_at, tenant, spec, payload)
    SELECT -n, 'infinity', 'infinity', 0, 0, '' FROM generate_series(1, 10000) AS n;
    INSERT INTO node (run, tenant, state) SELECT -n, 0, 2 FROM generate_series(1, 10000) AS n;
    ANALYZE run, ready, timer, node;
END $$;
INSERT INTO node (run, tenant, state) SELECT -n, 0, 2 FROM generate_series(1, 10000) AS n;
ANALYZE node;

-- What happened that somebody may want to be told of. kind: 1 a run of a graph died, and others are blocked behind it.
CREATE TABLE event (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant  integer NOT NULL,
    kind    smallint NOT NULL CHECK (kind IN (1)),
    job     bigint,
    run     bigint NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX event_of_tenant ON event (tenant, id);
CREATE INDEX event_age ON event (at);

-- Of runs that wait for no parent any more: those that may be made ready at once. The others go on to what they wait for
-- next: their time, or a seat. Those of a paused job stay blocked until it is resumed.
CREATE FUNCTION let_go(ids bigint[], OUT free bigint[], OUT entering bigint[])
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    early bigint[];
BEGIN
    SELECT coalesce(array_agg(run.id) FILTER (WHERE its.due AND NOT its.limited), '{}'),
           coalesce(array_agg(run.id) FILTER (WHERE its.due AND its.limited), '{}'),
           array_agg(run.id) FILTER (WHERE NOT its.due)
      INTO free, entering, early
      FROM unnest(ids) AS x(id)
      JOIN run ON run.id = x.id AND run.state = 2
      JOIN spec ON spec.id = run.spec
      JOIN tenant ON tenant.id = run.tenant
      LEFT JOIN job ON job.id = run.job
      -- What was fired is due, whatever the clock says now, unless it has a place of its own after the instant.
     CROSS JOIN LATERAL (SELECT run.due_at <= clock_timestamp() OR (run.origin = 0 AND run.due_at = run.scheduled_at) AS due,
                                spec.concurrency IS NOT NULL OR tenant.concurrency IS NOT NULL AS limited) AS its
     WHERE job.gate IS DISTINCT FROM 1;
    IF early IS NOT NULL THEN
        UPDATE run SET state = 0 WHERE id = ANY (early);
    END IF;
END $$;

-- After something has happened to these runs: those that ended tell their children. Who has been told all it waits for
-- goes; who waits for what cannot come any more is skipped, and its children are told in turn. Children are grouped: two
-- parents that end in one batch count twice. Answers with the runs that go.
CREATE FUNCTION follow(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    instant  timestamptz := clock_timestamp();
    freed    bigint[] := '{}';
    over     bigint[];
    fates    smallint[];
    more     bigint[];
    reasons  text[];
    first    boolean := true;
BEGIN
    IF NOT EXISTS (SELECT FROM node WHERE run = ANY (ids)) THEN
        RETURN '{}';
    END IF;
    -- A dead run that was replayed goes on. Like any replay it takes nobody's place: overlap does not apply to it.
    WITH back AS (
        UPDATE node SET state = 1
         WHERE run = ANY (ids) AND state = 2 AND EXISTS (SELECT FROM run WHERE run.id = node.run)
        RETURNING graph
    )
    UPDATE graph_run g SET going = g.going + back.runs, ended_at = NULL, exclusive = false
      FROM (SELECT graph, count(*)::int AS runs FROM back WHERE graph IS NOT NULL GROUP BY graph) AS back
     WHERE g.id = back.graph;

    SELECT array_agg(n.run), array_agg(CASE WHEN dead.id IS NOT NULL THEN 5 ELSE coalesce(ended.state, 6) END)
      INTO over, fates
      FROM node n
      LEFT JOIN dead_letter dead ON dead.id = n.run
      LEFT JOIN LATERAL (
             SELECT h.state FROM history h
              WHERE h.tenant = n.tenant AND h.run = n.run AND h.state > 3 AND h.finished_at > instant - interval '1 day'
              ORDER BY h.finished_at DESC LIMIT 1) AS ended ON dead.id IS NULL
     WHERE n.run = ANY (ids) AND NOT EXISTS (SELECT FROM run WHERE run.id = n.run)
       AND NOT (n.state = 2 AND dead.id IS NOT NULL);

    WHILE over IS NOT NULL LOOP
        IF NOT first THEN
            PERFORM FROM node
              WHERE graph IS NULL AND run IN (SELECT unnest(n.children) FROM node n WHERE n.run = ANY (over))
              ORDER BY run FOR UPDATE;
        END IF;
        WITH ended AS MATERIALIZED (
            SELECT n.run, n.graph, n.tenant, n.state, n.told, n.children, n.conditions, x.fate
              FROM unnest(over, fates) AS x(run, fate) JOIN node n ON n.run = x.run
        ), kept AS (
            UPDATE node SET state = 2, told = true FROM ended WHERE node.run = ended.run AND ended.fate = 5
        ), gone AS (
            DELETE FROM node USING ended WHERE node.run = ended.run AND ended.fate <> 5
        ), said AS (
            SELECT edge.child,
                   count(*) FILTER (WHERE (edge.condition = 0 AND fate = 4) OR (edge.condition = 1 AND NOT told)) AS met,
                   bool_or(edge.condition = 2 AND NOT told AND fate IN (5, 7, 10)) AS failed,
                   count(*) FILTER (WHERE edge.condition = 2 AND NOT told AND fate NOT IN (5, 7, 10)) AS spared,
                   min(run) FILTER (WHERE edge.condition = 0 AND fate NOT IN (4, 5)) AS lost,
                   min(fate) FILTER (WHERE edge.condition = 0 AND fate NOT IN (4, 5)) AS how
              FROM ended CROSS JOIN LATERAL unnest(ended.children, ended.conditions) AS edge(child, condition)
             GROUP BY edge.child
        ), changed AS (
            UPDATE node SET waits = node.waits - said.met,
                            alarms = CASE WHEN NOT said.failed THEN node.alarms - said.spared END,
                            state = CASE WHEN said.lost IS NULL AND node.waits = said.met
                                              AND (said.failed OR node.alarms IS NULL) THEN 1 ELSE 0 END
              FROM said WHERE node.run = said.child AND node.state = 0 AND node.run <> ALL (over)
            RETURNING node.run, node.graph, node.state, said.lost IS NOT NULL OR node.alarms = 0 AS doomed,
                      CASE WHEN said.lost IS NULL THEN 'none of the runs whose failure it waits for has failed'
                           ELSE 'its parent run_' || id_text(said.lost) ||
                                CASE said.how WHEN 6 THEN ' was cancelled' WHEN 7 THEN ' was lost with its worker'
                                              WHEN 8 THEN ' was skipped' WHEN 10 THEN ' failed and was discarded'
                                              ELSE ' did not succeed' END END AS reason
        ), tally AS (
            UPDATE graph_run g
               SET going = g.going + moved.runs, ended_at = CASE WHEN g.going + moved.runs = 0 THEN instant END
              FROM (SELECT graph, sum(runs)::int AS runs
                      FROM (SELECT graph, -1 AS runs FROM ended WHERE state = 1
                            UNION ALL SELECT graph, 1 FROM changed WHERE state = 1) AS each
                     WHERE graph IS NOT NULL GROUP BY graph) AS moved
             WHERE g.id = moved.graph
        ), heard AS (
            INSERT INTO event (tenant, kind, job, run)
            SELECT ended.tenant, 1, dead.job, ended.run FROM ended JOIN dead_letter dead ON dead.id = ended.run
             WHERE ended.fate = 5 AND 0 = ANY (ended.conditions)
        )
        SELECT freed || coalesce(array_agg(run) FILTER (WHERE state = 1), '{}'), array_agg(run) FILTER (WHERE doomed),
               array_agg(reason) FILTER (WHERE doomed)
          INTO freed, more, reasons FROM changed;
        IF more IS NOT NULL THEN
            WITH left_out AS (
                DELETE FROM run USING unnest(more, reasons) AS x(run, reason) WHERE run.id = x.run
                RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt, x.reason
            )
            INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
            SELECT id, job, scheduled_at, due_at, instant, tenant, spec, attempt, 0, 8, reason FROM left_out;
        END IF;
        over := more;
        fates := array_fill(8::smallint, ARRAY[coalesce(cardinality(more), 0)]);
        first := false;
    END LOOP;
    RETURN freed;
END $$;

-- The seam of the fifteenth migration. A graph is locked whole; one-time jobs have none, so there the run and those who wait
-- for it are. After the slots, before the runs.
CREATE OR REPLACE FUNCTION lock_ties(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    slots bigint[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a run that others wait for cannot be settled at the isolation level %',
                        current_setting('transaction_isolation')
              USING ERRCODE = 'feature_not_supported', HINT = 'use READ COMMITTED for runs under a limit, or of a graph';
    END IF;
    slots := ARRAY(SELECT id FROM slot WHERE id IN (SELECT slot FROM seat WHERE run = ANY (ids)) ORDER BY id FOR UPDATE);
    PERFORM FROM graph_run WHERE id IN (SELECT graph FROM node WHERE run = ANY (ids)) ORDER BY id FOR UPDATE;
    PERFORM FROM node
      WHERE graph IS NULL
        AND run IN (SELECT unnest(n.run || n.children) FROM node n WHERE n.run = ANY (ids) AND n.graph IS NULL)
      ORDER BY run FOR UPDATE;
    RETURN slots;
END $$;

CREATE OR REPLACE FUNCTION untie(ids bigint[], locked bigint[]) RETURNS integer[]
    LANGUAGE plpgsql AS $$
DECLARE
    going  record;
    lanes  integer[];
BEGIN
    SELECT * INTO going FROM let_go(follow(ids));
    lanes := make_ready(vacate(ids, locked) || going.free);
    RETURN CASE WHEN cardinality(going.entering) > 0 THEN lanes || enter(going.entering) ELSE lanes END;
END $$;

-- Makes the nodes of graphs whose runs were just written, blocked, and lets the roots go. Edges are looked up first and then
-- joined in memory by hashing: the planner knows nothing of how many there are, and loops over 10,000 took seconds.
CREATE FUNCTION lay_graphs(graphs bigint[], runs bigint[], jobs bigint[], tenants integer[], instants timestamptz[])
    RETURNS void
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    edge_graph      bigint[];
    edge_parent     bigint[];
    edge_child      bigint[];
    edge_condition  smallint[];
    going           record;
BEGIN
    SELECT array_agg(m.graph), array_agg(d.parent), array_agg(m.run), array_agg(d.condition)
      INTO edge_graph, edge_parent, edge_child, edge_condition
      FROM unnest(graphs, runs, jobs, instants) AS m(graph, run, job, at)
      JOIN dependency d ON d.child = m.job AND d.after < m.at AND d.until >= m.at;
    PERFORM set_config('enable_nestloop', 'off', true), set_config('enable_hashjoin', 'on', true);
    WITH member AS MATERIALIZED (
        SELECT * FROM unnest(graphs, runs, jobs, tenants) AS m(graph, run, job, tenant)
    ), edge AS MATERIALIZED (
        SELECT e.graph, p.run AS parent, e.child, e.condition
          FROM unnest(edge_graph, edge_parent, edge_child, edge_condition) AS e(graph, parent, child, condition)
          JOIN member p ON p.graph = e.graph AND p.job = e.parent
    ), down AS (
        SELECT parent, array_agg(child) AS children, array_agg(condition) AS conditions FROM edge GROUP BY parent
    ), up AS (
        SELECT child, array_agg(parent) AS parents, count(*) FILTER (WHERE condition < 2) AS waits,
               nullif(count(*) FILTER (WHERE condition = 2), 0) AS alarms
          FROM edge GROUP BY child
    ), laid AS (
        INSERT INTO node (run, graph, tenant, state, waits, alarms, parents, children, conditions)
        SELECT m.run, m.graph, m.tenant, (up.child IS NULL)::int, coalesce(up.waits, 0), up.alarms,
               coalesce(up.parents, '{}'), coalesce(down.children, '{}'), coalesce(down.conditions, '{}')
          FROM member m LEFT JOIN up ON up.child = m.run LEFT JOIN down ON down.parent = m.run
        RETURNING graph, state
    ), begun AS (
        UPDATE graph_run g SET going = roots.runs
          FROM (SELECT graph, count(*)::int AS runs FROM laid WHERE state = 1 GROUP BY graph) AS roots
         WHERE g.id = roots.graph
    )
    INSERT INTO graph_shape (id, jobs, parents, children, conditions)
    SELECT m.graph, m.jobs, coalesce(e.parents, '{}'), coalesce(e.children, '{}'), coalesce(e.conditions, '{}')
      FROM (SELECT graph, array_agg(job ORDER BY run) AS jobs FROM member GROUP BY graph) AS m
      LEFT JOIN (SELECT graph, array_agg((parent - graph)::smallint) AS parents,
                        array_agg((child - graph)::smallint) AS children, array_agg(condition) AS conditions
                   FROM edge GROUP BY graph) AS e ON e.graph = m.graph;
    PERFORM set_config('enable_nestloop', 'on', true);
    SELECT * INTO going FROM let_go(ARRAY(SELECT run FROM unnest(runs) AS run WHERE run <> ALL (coalesce(edge_child, '{}'))));
    PERFORM make_ready(going.free);
    IF cardinality(going.entering) > 0 THEN
        PERFORM enter(going.entering);
    END IF;
END $$;

-- Fires graphs at their instants: all runs and edges of one in one statement's transaction, or a skip of all of them. `heads`
-- with the ids that their runs begin with; the caller holds the schedules.
CREATE FUNCTION fire_graphs(schedules bigint[], instants timestamptz[], heads bigint[], firsts bigint[])
    RETURNS TABLE (fired integer, skipped integer)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    reasons  text[];
    graphs   bigint[];
    runs     bigint[];
    jobs     bigint[];
    tenants  integer[];
    ats      timestamptz[];
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT x.place, x.at, x.head, x.first, s.tenant, s.exclusive, s.closed,
               CASE WHEN s.counted
                    THEN (SELECT runs_left FROM job WHERE job.id = x.head FOR NO KEY UPDATE) END AS runs_left
          FROM unnest(schedules, instants, heads, firsts) WITH ORDINALITY AS x(schedule, at, head, first, place)
          JOIN subscription s ON s.schedule = x.schedule AND s.job = x.head AND s.after < x.at AND s.until >= x.at
    ), opened AS (
        INSERT INTO graph_run (id, head, tenant, scheduled_at, exclusive, going)
        SELECT first, head, tenant, at, exclusive, 1 FROM asked WHERE NOT closed AND runs_left IS DISTINCT FROM 0
         ORDER BY head
        ON CONFLICT (head) WHERE exclusive AND ended_at IS NULL DO NOTHING
        RETURNING id
    ), spent AS (
        UPDATE job SET runs_left = job.runs_left - 1
         WHERE id IN (SELECT head FROM asked WHERE runs_left IS NOT NULL AND first IN (SELECT id FROM opened))
        RETURNING id, runs_left
    ), ended AS (
        -- As ordinary jobs: what has had all its runs owns no more instants.
        UPDATE subscription s SET until = least(s.until, greatest(asked.at, c.cursor))
          FROM spent JOIN asked ON asked.head = spent.id JOIN schedule c ON c.id = schedules[asked.place]
         WHERE spent.runs_left = 0 AND s.head = spent.id AND s.schedule = c.id AND s.after < asked.at AND s.until >= asked.at
    )
    SELECT array_agg(CASE WHEN closed THEN 'the job was paused or cancelled'
                          WHEN runs_left = 0 THEN 'the job has had all its runs'
                          WHEN first NOT IN (SELECT id FROM opened) THEN 'the previous run of its graph was still going' END
                     ORDER BY place)
      INTO reasons FROM asked;
    WITH member AS MATERIALIZED (
        SELECT x.first + row_number() OVER (PARTITION BY x.first ORDER BY s.job <> x.head, s.job) - 1 AS run, x.first, x.at,
               x.reason, x.at + lead.phase * interval '1 millisecond' AS due_at, s.job, s.tenant, s.spec, s.payload,
               s.limit_key
          FROM unnest(schedules, instants, heads, firsts, reasons) AS x(schedule, at, head, first, reason)
          JOIN subscription lead ON lead.schedule = x.schedule AND lead.job = x.head AND lead.after < x.at
          JOIN subscription s ON s.head = x.head AND s.schedule = x.schedule AND s.after < x.at
                             AND (s.until >= x.at)
         WHERE lead.until >= x.at
    ), made AS (
        INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, tenant, spec, state, tied, limit_key, payload)
        SELECT run, job, 0, at, at, due_at, tenant, spec, 2, true, limit_key, payload FROM member WHERE reason IS NULL
    ), told AS (
        INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
        SELECT run, job, at, at, clock_timestamp(), tenant, spec, 0, 0, 8, reason FROM member WHERE reason IS NOT NULL
    )
    SELECT array_agg(first) FILTER (WHERE reason IS NULL), array_agg(run) FILTER (WHERE reason IS NULL),
           array_agg(job) FILTER (WHERE reason IS NULL), array_agg(tenant) FILTER (WHERE reason IS NULL),
           array_agg(at) FILTER (WHERE reason IS NULL), count(*) FILTER (WHERE reason IS NULL)::int,
           count(*) FILTER (WHERE reason IS NOT NULL)::int
      INTO graphs, runs, jobs, tenants, ats, fired, skipped FROM member;
    IF runs IS NOT NULL THEN
        PERFORM lay_graphs(graphs, runs, jobs, tenants, ats);
    END IF;
    RETURN NEXT;
END $$;

-- Starts the graph of a root by hand, now or at another time: as its jobs stand, overlap does not apply. The root may have a
-- payload and a spec of its own for this time. No row if a job of the graph was paused or cancelled meanwhile.
CREATE FUNCTION start_graph(root bigint, own_spec integer, own_payload bytea, own_key bigint, due timestamptz, first bigint)
    RETURNS integer
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    lead     bigint := (SELECT head FROM job WHERE id = root);
    runs     bigint[];
    jobs     bigint[];
    tenants  integer[];
BEGIN
    INSERT INTO graph_run (id, head, tenant, scheduled_at, exclusive, going)
    SELECT first, lead, tenant, due, false, 1 FROM job WHERE id = root;
    WITH member AS MATERIALIZED (
        SELECT first + row_number() OVER (ORDER BY job.id <> lead, job.id) - 1 AS run, job.id, job.tenant, job.spec,
               job.limit_key, job.payload
          FROM job WHERE job.head = lead
    ), made AS (
        INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, tenant, spec, state, tied, limit_key, payload)
        SELECT run, id, run, due, due, due, tenant, CASE WHEN id = root THEN own_spec ELSE spec END, 2, true,
               CASE WHEN id = root THEN own_key ELSE limit_key END, CASE WHEN id = root THEN own_payload ELSE payload END
          FROM member
    )
    SELECT array_agg(run ORDER BY run), array_agg(id ORDER BY run), array_agg(tenant ORDER BY run)
      INTO runs, jobs, tenants FROM member;
    PERFORM lay_graphs(array_fill(first, ARRAY[cardinality(runs)]), runs, jobs, tenants,
                       array_fill('infinity'::timestamptz, ARRAY[cardinality(runs)]));
    RETURN array_position(jobs, root) - 1;
END $$;

-- Lets runs of one-time jobs wait for those of their parents, edge by edge. What has ended already counts; the fates of
-- such parents are returned, and nothing is done, if one of them can never be what a child waits for.
-- Whoever waits for another time comes out of `timer`: what is tied is kept where whoever ends a run looks.
CREATE FUNCTION tie_to_parents(edge_child bigint[], edge_parent bigint[], edge_condition smallint[])
    RETURNS TABLE (parent bigint, fate smallint)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    everyone  bigint[] := edge_child || edge_parent;
    ended     bigint[];
    fates     smallint[];
BEGIN
    WITH moved AS (
        DELETE FROM timer WHERE id = ANY (everyone) RETURNING *
    )
    INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, tenant, spec, state, target, payload, limit_key)
    SELECT id, job, origin, CASE WHEN job IS NOT NULL THEN due_at END, scheduled_at, due_at, tenant, spec,
           CASE WHEN held THEN 2 ELSE 0 END, target, payload, limit_key
      FROM moved;
    PERFORM FROM node WHERE run = ANY (everyone) ORDER BY run FOR UPDATE;
    -- A settle in mid-transaction is waited for; one that comes later finds the run tied.
    PERFORM FROM run WHERE id = ANY (everyone) ORDER BY id FOR UPDATE;
    SELECT array_agg(x.parent), array_agg(x.fate) INTO ended, fates
      FROM (SELECT DISTINCT e.parent,
                   CASE WHEN EXISTS (SELECT FROM dead_letter d WHERE d.id = e.parent) THEN 5
                        ELSE coalesce((SELECT h.state FROM history h
                                        WHERE h.tenant = child.tenant AND h.run = e.parent AND h.state > 3
                                        ORDER BY h.finished_at DESC LIMIT 1), 6) END AS fate
              FROM unnest(edge_parent, edge_child) AS e(parent, child) JOIN run child ON child.id = e.child
             WHERE NOT EXISTS (SELECT FROM run WHERE run.id = e.parent)) AS x;
    RETURN QUERY
    SELECT DISTINCT e.parent, x.fate
      FROM unnest(edge_parent, edge_condition) AS e(parent, condition)
      JOIN unnest(ended, fates) AS x(parent, fate) ON x.parent = e.parent
     WHERE (e.condition = 0 AND x.fate NOT IN (4, 5)) OR (e.condition = 2 AND x.fate NOT IN (5, 7, 10));
    IF FOUND THEN
        RETURN;
    END IF;
    WITH edge AS MATERIALIZED (
        SELECT e.parent, e.child, e.condition, x.fate,
               x.fate IS NULL OR (e.condition = 0 AND x.fate = 5) AS open
          FROM unnest(edge_parent, edge_child, edge_condition) AS e(parent, child, condition)
          LEFT JOIN unnest(ended, fates) AS x(parent, fate) ON x.parent = e.parent
    ), below AS (
        SELECT child, array_agg(parent) AS parents, count(*) FILTER (WHERE condition < 2) AS waits,
               CASE WHEN bool_or(condition = 2) AND NOT EXISTS (SELECT FROM edge met WHERE met.child = edge.child
                                                                  AND met.condition = 2 AND NOT met.open)
                    THEN count(*) FILTER (WHERE condition = 2) END AS alarms
          FROM edge WHERE open GROUP BY child
    ), above AS (
        SELECT parent, max(fate) AS fate, array_agg(child) AS children, array_agg(condition) AS conditions
          FROM edge WHERE open GROUP BY parent
    ), whole AS (
        SELECT coalesce(below.child, above.parent) AS run, coalesce(below.waits, 0) AS waits, below.alarms,
               coalesce(below.parents, '{}') AS parents, coalesce(above.children, '{}') AS children,
               coalesce(above.conditions, '{}') AS conditions, above.fate = 5 AS dead
          FROM below FULL JOIN above ON above.parent = below.child
    )
    INSERT INTO node AS n (run, tenant, state, told, waits, alarms, parents, children, conditions)
    SELECT w.run, (SELECT tenant FROM run WHERE id = ANY (edge_child) LIMIT 1),
           CASE WHEN w.dead THEN 2 WHEN w.waits > 0 OR w.alarms > 0 THEN 0 ELSE 1 END, coalesce(w.dead, false), w.waits,
           w.alarms, w.parents, w.children, w.conditions
      FROM whole w ORDER BY w.run
    ON CONFLICT (run) DO UPDATE SET children = n.children || excluded.children,
                                    conditions = n.conditions || excluded.conditions, waits = n.waits + excluded.waits,
                                    alarms = coalesce(n.alarms, excluded.alarms), parents = n.parents || excluded.parents,
                                    state = CASE WHEN excluded.state = 0 THEN 0 ELSE n.state END;
    UPDATE run SET tied = true, state = CASE WHEN node.state = 0 THEN 2 ELSE run.state END
      FROM node WHERE run.id = ANY (everyone) AND node.run = run.id;
END $$;

-- As before (see the fifteenth migration), with what a job depends on; and a graph has one trigger, what its first root owns.
CREATE OR REPLACE VIEW job_view AS
SELECT job.id, job.tenant, job.name, job.key, job.spec, job.kind, job.gate, job.exclusive, job.schedule, job.run,
       job.timing, job.labels, job.payload, job.version, job.created_at, job.updated_at, spec.body AS spec_body,
       schedule.key AS schedule_key, schedule.next_at, owned.after, nullif(owned.until, 'infinity') AS until,
       last.run AS last_run, last.state AS last_state, last.scheduled_at AS last_scheduled_at,
       last.started_at AS last_started_at, last.finished_at AS last_finished_at, last.error AS last_error,
       CASE WHEN job.gate = 2 THEN 'cancelled'
            WHEN ended.state = 4 THEN 'completed'
            WHEN ended.state = 6 THEN 'cancelled'
            WHEN ended.state IS NOT NULL THEN 'failed'
            WHEN going.is_running THEN 'running'
            WHEN job.gate = 1 THEN 'paused'
            WHEN EXISTS (SELECT FROM run WHERE run.job = job.id AND run.state = 2) THEN 'blocked'
            WHEN job.kind = 2 AND coalesce(owned.until, '-infinity') < clock_timestamp() THEN 'completed'
            ELSE 'pending' END AS status, job.overlap, job.head,
       ARRAY(SELECT d.parent FROM dependency d WHERE d.child = job.id AND d.until = 'infinity' ORDER BY d.place) AS parents,
       ARRAY(SELECT d.condition FROM dependency d WHERE d.child = job.id AND d.until = 'infinity' ORDER BY d.place)
       AS conditions
  FROM job
  JOIN spec ON spec.id = job.spec
  LEFT JOIN schedule ON schedule.id = job.schedule
  LEFT JOIN LATERAL (SELECT s.after, s.until FROM subscription s
                      WHERE s.job = coalesce(job.head, job.id) AND s.schedule = job.schedule
                      ORDER BY s.after DESC LIMIT 1) AS owned ON true
  LEFT JOIN LATERAL (SELECT h.run, h.state, h.scheduled_at, h.started_at, h.finished_at, h.error FROM history h
                      WHERE h.job = job.id AND h.state > 3 ORDER BY h.run DESC, h.finished_at DESC LIMIT 1) AS last ON true
  LEFT JOIN LATERAL (SELECT h.state FROM history h WHERE h.job = job.id AND h.run = job.run AND h.state > 3
                      ORDER BY h.finished_at DESC LIMIT 1) AS ended ON true
 CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM live_run r WHERE r.job = job.id AND r.state = 3) AS is_running) AS going;
