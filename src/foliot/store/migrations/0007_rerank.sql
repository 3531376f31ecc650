-- Weights that change: a tenant's backlog is ranked anew, a page at a time, by whichever scheduler comes by.

-- One flow whose backlog is on the move, and how far it has got: see domain/rerank.py. The row changes in the transaction
-- that moves a page, so whoever comes next goes on where the last one stopped.
-- `landed`: up to here every rank that was given out has long been used or never will be. `seen` is the last rank given
-- out at `seen_at`, and becomes `landed` once what was reserved by then must have been inserted.
CREATE TABLE rerank (
    lane      integer NOT NULL,
    tenant    integer NOT NULL,
    priority  smallint NOT NULL,
    before    smallint NOT NULL CHECK (before BETWEEN 1 AND 1000),
    after     smallint NOT NULL CHECK (after BETWEEN 1 AND 1000),
    boundary  bigint NOT NULL,
    place     bigint NOT NULL,
    image     bigint NOT NULL,
    landed    bigint,
    seen      bigint NOT NULL,
    seen_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (lane, tenant, priority),
    CHECK (before <> after),
    CHECK (CASE WHEN after > before THEN image <= place ELSE image >= place END)
) WITH (fillfactor = 50);

-- Whoever accepts runs asks for the weights every other second; most tenants weigh 1.
CREATE INDEX tenant_weighted ON tenant (id) INCLUDE (weight) WHERE weight <> 1;

-- In which flow a run was ranked. What is made up for goes into its tenant's bulk flow (4), whatever its own priority:
-- runs of instants that came up late (by more than the 30 s of grace; ids carry the time they were made, in milliseconds
-- since 2025), and those of a back-fill. A retry is ranked by its own.
CREATE FUNCTION ranked_as(priority smallint, run bigint, origin bigint, attempt smallint, scheduled_at timestamptz)
    RETURNS smallint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN attempt = 0 AND ((origin > 1 AND origin <> run)
                     OR (origin = 0 AND (run >> 22) + 1735689600000 > (extract(epoch FROM scheduled_at) + 30) * 1000))
                THEN 4::smallint ELSE priority END;
