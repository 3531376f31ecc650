-- Attempts that go on outside, small results, and the key by which Foliot knows its own hand.

-- An attempt whose handler has taken it over: no worker holds it any more, so that none has to live for it. The run is
-- admitted, stands in no claim, and has fence = this one: it is ended by whoever takes this row away (see `conclude`).
CREATE TABLE outside (
    run         bigint PRIMARY KEY,
    fence       bigint NOT NULL,
    worker      bigint NOT NULL,                                -- who called the handler
    started_at  timestamptz NOT NULL,
    until       timestamptz NOT NULL                            -- then it has timed out
);
CREATE INDEX outside_until ON outside (until);

-- What a handler returned, as JSON. Null for nearly all, and so free.
ALTER TABLE history ADD COLUMN result bytea;

-- All that Foliot signs is signed with keys made from this one, which never leaves the database. There is one row.
CREATE TABLE seal (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    key   bytea NOT NULL CHECK (length(key) = 32)
);
-- Each of them has 122 bits from the system's source of chance; PostgreSQL has no other word for it without an extension.
INSERT INTO seal (key)
SELECT sha256(string_agg(uuid_send(gen_random_uuid()), '')) FROM generate_series(1, 4);

-- The key of one worker, or of one tenant's calls: it tells nothing of any other.
CREATE FUNCTION derived_key(purpose text, number bigint) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT sha256(key || sha256(key || convert_to(purpose, 'UTF8') || int8send(number))) FROM seal);
