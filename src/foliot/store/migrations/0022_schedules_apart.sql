-- A schedule is one tenant's. Shared by all, one tenant's hundred thousand jobs of an instant were fired before another's
-- single one, and whoever edited many jobs at once held up the firing of everybody else's
-- (docs/why/0042-schedules-of-one-tenant.md).

ALTER TABLE schedule ADD COLUMN tenant integer REFERENCES tenant;
CREATE TEMPORARY TABLE used ON COMMIT DROP AS
SELECT schedule, tenant, row_number() OVER (PARTITION BY schedule ORDER BY tenant) AS place
  FROM (SELECT schedule, tenant FROM job WHERE schedule IS NOT NULL
         UNION
        SELECT schedule, tenant FROM subscription
         UNION
        SELECT schedule, tenant FROM past_subscription) AS each;

-- The first of its tenants keeps it. What nobody uses any more is forgotten.
UPDATE schedule SET tenant = used.tenant FROM used WHERE used.schedule = schedule.id AND used.place = 1;
DELETE FROM firing WHERE schedule NOT IN (SELECT schedule FROM used);
DELETE FROM schedule WHERE tenant IS NULL;
ALTER TABLE schedule ALTER COLUMN tenant SET NOT NULL, DROP CONSTRAINT schedule_key_key, ADD UNIQUE (tenant, key);

-- Each of the others gets one of its own that has come as far, with all that is on record about its instants.
INSERT INTO schedule (tenant, key, cursor, next_at, latest_within, all_within)
SELECT used.tenant, key, cursor, next_at, latest_within, all_within
  FROM used JOIN schedule ON schedule.id = used.schedule WHERE used.place > 1;
CREATE TEMPORARY TABLE moved ON COMMIT DROP AS
SELECT used.schedule AS before, used.tenant, own.id AS schedule
  FROM used JOIN schedule ON schedule.id = used.schedule
  JOIN schedule own ON own.tenant = used.tenant AND own.key = schedule.key
 WHERE used.place > 1;
UPDATE job SET schedule = moved.schedule FROM moved WHERE job.schedule = moved.before AND job.tenant = moved.tenant;
UPDATE subscription s SET schedule = moved.schedule FROM moved WHERE s.schedule = moved.before AND s.tenant = moved.tenant;
UPDATE past_subscription p SET schedule = moved.schedule FROM moved
 WHERE p.schedule = moved.before AND p.tenant = moved.tenant;
INSERT INTO firing (schedule, at, through, missed, done_through, fired, skipped, opened_at, closed_at, following,
                    late_through, passed_over)
SELECT moved.schedule, at, through, missed, done_through, fired, skipped, opened_at, closed_at, following, late_through,
       passed_over
  FROM moved JOIN firing ON firing.schedule = moved.before;
