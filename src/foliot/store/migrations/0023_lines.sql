-- The head of a busy line is where everybody has just been: until a vacuum comes by, whoever calls the next one walks over
-- the entries of all who were called before. At 8,000 runs a second under one limit that was 4 ms for 50 of them.

-- So the line remembers how far it has come. Nobody relies on it for long, since whoever joins further ahead (a retry, a
-- higher priority, one whose commit took longer) tells nobody: after a tenth of a second, or if too few stand behind
-- the mark, the whole line is looked at again. Lines that move by few at a time, as those of a limit of 1, keep none.
ALTER TABLE slot
    ADD COLUMN mark_priority  smallint,
    ADD COLUMN mark_at        timestamptz,
    ADD COLUMN mark_run       bigint,
    ADD COLUMN marked_at      timestamptz;

-- Gives what is free in these lines, which the caller has locked, to those in front, and sends these on to their next line;
-- the runs that hold all their seats by that. How many hold a line is counted, never noted: a count cannot drift. A line
-- that is let go altogether may have a million in it, so it goes on in portions.
CREATE OR REPLACE FUNCTION hand_over(slots bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    again    bigint[];
    moved    bigint[];
    winners  bigint[] := '{}';
BEGIN
    FOR this IN 1..3 LOOP
        again := ARRAY(SELECT x.slot FROM unnest(slots) AS x(slot) WHERE x.slot & 3 = this);
        FOR from_mark IN REVERSE 1..0 LOOP
            EXIT WHEN cardinality(again) = 0;
            WITH line AS MATERIALIZED (
                SELECT its.*, CASE WHEN its.marked OR EXISTS (SELECT FROM seat w WHERE w.slot = its.id AND w.state = 1)
                                   THEN least(5000, its.capacity - (SELECT count(*) FROM seat h
                                                                     WHERE h.slot = its.id AND h.state = 2))
                                   ELSE 0 END AS free
                  FROM (SELECT slot.*, from_mark = 1 AND coalesce(clock_timestamp() - slot.marked_at, '1 s')
                                       BETWEEN interval '0' AND interval '100 ms' AS marked
                          FROM slot WHERE slot.id = ANY (again) OFFSET 0) AS its
            ), front AS MATERIALIZED (
                SELECT line.id AS slot, first.*
                  FROM line
                 CROSS JOIN LATERAL (
                        SELECT s.ctid AS place, s.priority, s.at, s.run FROM seat s
                         WHERE line.marked AND s.slot = line.id AND s.state = 1
                           AND (s.priority, s.at, s.run) >= (line.mark_priority, line.mark_at, line.mark_run)
                         ORDER BY s.priority, s.at, s.run LIMIT greatest(0, line.free)) AS first
                 UNION ALL
                SELECT line.id AS slot, first.*
                  FROM line
                 CROSS JOIN LATERAL (
                        SELECT s.ctid AS place, s.priority, s.at, s.run FROM seat s
                         WHERE NOT line.marked AND s.slot = line.id AND s.state = 1
                         ORDER BY s.priority, s.at, s.run LIMIT greatest(0, line.free)) AS first
            ), won AS (
                UPDATE seat SET state = 2 FROM front WHERE seat.ctid = front.place
                RETURNING seat.run, seat.next
            ), onward AS (
                -- Looked up one by one: a join walked all seats, as soon as statistics said that hardly any is in state 0.
                UPDATE seat SET state = 1
                  FROM (SELECT (SELECT s.ctid FROM seat s WHERE s.run = won.run AND s.line = won.next AND s.state < 1)
                               AS place
                          FROM won WHERE won.next IS NOT NULL OFFSET 0) AS its
                 WHERE seat.ctid = its.place
                RETURNING seat.slot
            ), knocked AS (
                INSERT INTO knock (slot)
                SELECT DISTINCT slot FROM onward WHERE slot NOT IN (SELECT unnest(slots))
                 UNION ALL
                SELECT slot FROM front GROUP BY slot HAVING count(*) = 5000
            ), crowd AS (
                SELECT slot FROM front GROUP BY slot HAVING count(*) >= 16
            ), came AS (
                UPDATE slot SET mark_priority = last.priority, mark_at = last.at, mark_run = last.run,
                                marked_at = CASE WHEN line.marked THEN slot.marked_at ELSE clock_timestamp() END
                  FROM crowd JOIN line ON line.id = crowd.slot
                 CROSS JOIN LATERAL (SELECT f.priority, f.at, f.run FROM front f WHERE f.slot = crowd.slot
                                      ORDER BY f.priority DESC, f.at DESC, f.run DESC LIMIT 1) AS last
                 WHERE slot.id = line.id
            )
            SELECT (SELECT array_agg(run) FILTER (WHERE next IS NULL) FROM won),
                   ARRAY(SELECT line.id FROM line
                          WHERE line.marked AND line.free > (SELECT count(*) FROM front f WHERE f.slot = line.id))
              INTO moved, again;
            winners := winners || moved;
        END LOOP;
    END LOOP;
    RETURN winners;
END $$;
