-- Foliot asks for the time without saying whose. These come first in the search path, so the answer is the simulation's.
CREATE SCHEMA IF NOT EXISTS foliot;
CREATE SEQUENCE foliot.virtual_start MINVALUE 0 START 0;

-- {now}: microseconds since 1970, from wherever they are kept.
CREATE FUNCTION foliot.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN 'epoch'::timestamptz + {now} * interval '1 microsecond';
END $$;

-- Stable, as the real one: it bounds index scans.
CREATE FUNCTION foliot.statement_timestamp() RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN 'epoch'::timestamptz + {now} * interval '1 microsecond';
END $$;

CREATE FUNCTION foliot.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT foliot.clock_timestamp()';

CREATE FUNCTION foliot.pg_postmaster_start_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    $$ SELECT 'epoch'::timestamptz + last_value * interval '1 microsecond' FROM foliot.virtual_start $$;
