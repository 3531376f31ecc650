-- What tied runs cost: fewer calls for those that end well, and fewer looks for each (docs/why/0044-tied-runs-in-one-call.md).

-- As before (see the fifteenth migration), and the same numbers; but of parts that the planner may write into the statement
-- that asks: a call cost more than what it reckons.
CREATE OR REPLACE FUNCTION slot_number(tenant integer, line integer, owner bigint, key bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (('x' || left(md5(tenant::text || ' ' || line::text || ' ' || owner::text || coalesce(' ' || key::text, '')), 16)
            )::bit(64)::bigint & -4) | line;

-- Whoever counts down changes what its predicate asks for, so that every count was a new entry in each index. The sweeper
-- goes round page by page, as over lines.
DROP INDEX node_left_behind;

-- As before (see the eighteenth migration), but whoever knows what became of all of these says so (`known`), and nobody looks
-- through history for it.
DROP FUNCTION follow;
CREATE FUNCTION follow(ids bigint[], known smallint) RETURNS bigint[]
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
    IF known IS NOT NULL THEN
        SELECT array_agg(run), array_agg(known) INTO over, fates FROM node WHERE run = ANY (ids);
    ELSE
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
    END IF;

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
              FROM said WHERE node.run = said.child AND node.state = 0 AND node.run NOT IN (SELECT unnest(over))
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

-- As before, with what became of all of them, if the caller knows: 4 succeeded.
DROP FUNCTION untie;
CREATE FUNCTION untie(ids bigint[], locked bigint[], known smallint DEFAULT NULL) RETURNS integer[]
    LANGUAGE plpgsql AS $$
DECLARE
    freed     bigint[] := follow(ids, known);
    free      bigint[];
    entering  bigint[];
    lanes     integer[];
BEGIN
    IF cardinality(freed) > 0 THEN
        SELECT * INTO free, entering FROM let_go(freed);
    END IF;
    lanes := make_ready(vacate(ids, locked) || free);
    RETURN CASE WHEN cardinality(entering) > 0 THEN lanes || enter(entering) ELSE lanes END;
END $$;

-- As before, but the roots are found by hashing, where each was looked for among all children, and of `graph_run` only
-- those are touched that have several; they were joined to all of the last 30 days.
CREATE OR REPLACE FUNCTION lay_graphs(graphs bigint[], runs bigint[], jobs bigint[], tenants integer[], instants timestamptz[])
    RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_nestloop = on SET enable_hashjoin = on
AS $$
#variable_conflict use_column
DECLARE
    roots           bigint[];
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
    PERFORM set_config('enable_nestloop', 'off', true);
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
    )
    INSERT INTO graph_shape (id, jobs, parents, children, conditions)
    SELECT m.graph, m.jobs, coalesce(e.parents, '{}'), coalesce(e.children, '{}'), coalesce(e.conditions, '{}')
      FROM (SELECT graph, array_agg(job ORDER BY run) AS jobs FROM member GROUP BY graph) AS m
      LEFT JOIN (SELECT graph, array_agg((parent - graph)::smallint) AS parents,
                        array_agg((child - graph)::smallint) AS children, array_agg(condition) AS conditions
                   FROM edge GROUP BY graph) AS e ON e.graph = m.graph;
    PERFORM set_config('enable_nestloop', 'on', true);
    roots := ARRAY(SELECT unnest(runs) EXCEPT SELECT unnest(edge_child));
    UPDATE graph_run g SET going = its.runs
      FROM (SELECT graph, count(*)::int AS runs FROM unnest(graphs, runs) AS m(graph, run)
             WHERE run IN (SELECT unnest(roots)) GROUP BY graph HAVING count(*) > 1) AS its
     WHERE g.id = its.graph;
    SELECT * INTO going FROM let_go(roots);
    PERFORM make_ready(going.free);
    IF cardinality(going.entering) > 0 THEN
        PERFORM enter(going.entering);
    END IF;
END $$;

-- `lock_ties`, `settle` and `untie` in one call: a line that few may hold is as fast as its seats are free again, and that
-- took five round trips. The rule of the two statements holds as before: in READ COMMITTED each
-- statement of a volatile function sees what was committed before it began. The deed is word for word that of `settle`.
CREATE FUNCTION settle_tied(
    worker bigint, runs bigint[], fences bigint[], positions integer[], started_at timestamptz[], claims bigint[],
    is_tied boolean, OUT done bigint, OUT lanes integer[]
)
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    locked bigint[];
BEGIN
    locked := lock_ties($2);
WITH held AS MATERIALIZED (
    SELECT id, runs FROM claim WHERE id = ANY ($6::bigint[]) AND worker = $1 FOR KEY SHARE
), gone AS (
    DELETE FROM run USING unnest($2::bigint[], $3::bigint[], $4::int[], $5::timestamptz[])
                          AS x(run, fence, position, started_at), held
     WHERE held.id = x.fence AND held.runs[x.position] = x.run AND run.id = x.run AND run.fence < held.id
       AND (run.tied IS NULL OR $7::boolean)
    RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt, run.target,
              x.started_at, x.fence
), written AS (
    INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt,
                         ending, state, target)
    SELECT id, job, scheduled_at, due_at, started_at, clock_timestamp(), $1, fence, tenant, spec, attempt + 1, 1, 4, target
      FROM gone
    RETURNING 1
)
SELECT count(*) INTO done FROM written;
    lanes := untie($2, locked, CASE WHEN done = cardinality($2) THEN 4 END::smallint);
END $$;
