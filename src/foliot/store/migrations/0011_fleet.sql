-- The fleet: what each worker offers and has in hand, and which queues are paused.

-- `lanes` is what it subscribes to; `running` and `rate` (runs taken a second) stand beside them, place by place, as its
-- last heartbeat told. Arrays of one row, because a heartbeat writes that row anyway.
ALTER TABLE worker
    ADD COLUMN host         text NOT NULL DEFAULT '',
    ADD COLUMN pid          integer NOT NULL DEFAULT 0,
    ADD COLUMN version      text NOT NULL DEFAULT '',
    ADD COLUMN app          text,
    ADD COLUMN concurrency  integer NOT NULL DEFAULT 0 CHECK (concurrency >= 0),
    ADD COLUMN lanes        integer[] NOT NULL DEFAULT '{}',
    ADD COLUMN running      integer[] NOT NULL DEFAULT '{}',
    ADD COLUMN rate         real[] NOT NULL DEFAULT '{}',
    ADD CHECK (cardinality(running) IN (0, cardinality(lanes)) AND cardinality(rate) = cardinality(running));
CREATE INDEX worker_age ON worker (started_at, id);

-- The one gate that a claim checks. Nearly always empty, so that asking costs next to nothing. A row pauses every lane of
-- its queue, also those that are made later.
CREATE TABLE queue_pause (
    queue      text PRIMARY KEY,
    paused_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- OFFSET 0 keeps the planner from going the other way about, through all lanes: 20 of them cost a claim 26 us, this 8.
CREATE VIEW paused_lane AS
SELECT lane.id AS lane
  FROM (SELECT queue FROM queue_pause OFFSET 0) AS paused
 CROSS JOIN LATERAL (SELECT id FROM lane WHERE lane.queue = paused.queue OFFSET 0) AS lane;

-- Lanes that a worker serves which takes work and was heard within its lease: one that has just died may not have been
-- declared dead yet.
CREATE VIEW offered_lane AS
SELECT DISTINCT unnest(lanes) AS lane FROM worker
 WHERE state = 0 AND seen_at > clock_timestamp() - interval '15 seconds';
