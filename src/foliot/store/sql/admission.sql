-- :name take_seats
SELECT take_seats($1::bigint[])

-- :name lock_owners
-- Before their lines, as whoever pauses a job does: what comes back must see the gate.
SELECT id FROM job WHERE id IN (SELECT job FROM run WHERE id = ANY ($1::bigint[])) ORDER BY id FOR KEY SHARE

-- :name lock_ties
SELECT lock_ties($1::bigint[])

-- :name lock_tenant_line
SELECT id FROM slot WHERE id = slot_number($1, 3, 0, NULL) FOR UPDATE

-- :name hand_over
SELECT hand_over($1::bigint[])

-- :name untie
SELECT untie($1::bigint[], $2::bigint[])

-- :name admit
SELECT admit($1::bigint[], $2::bigint[])

-- :name left_behind
-- Runs whose turn it is and that nobody has called: there must be none.
SELECT first.run, first.slot FROM slot
 CROSS JOIN LATERAL (SELECT count(*) AS held FROM seat WHERE seat.slot = slot.id AND seat.state = 2) AS taken
 CROSS JOIN LATERAL (SELECT seat.run, seat.slot, seat.capacity FROM seat
                      WHERE seat.slot = slot.id AND seat.state = 1 AND seat.at <= clock_timestamp() - $1::interval
                      ORDER BY seat.priority, seat.at, seat.run LIMIT 1) AS first
 WHERE taken.held < first.capacity
 LIMIT $2
