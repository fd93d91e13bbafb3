-- Signals that are published because, and only if, the transaction that wrote them was committed.
-- Insert name and params; `kapelle outbox run` does the rest. Needs PostgreSQL 13 or later.

CREATE TABLE IF NOT EXISTS kapelle_outbox (
    position     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text NOT NULL DEFAULT gen_random_uuid()::text,  -- with the name, what the signal is known by
    name         text NOT NULL,
    params       jsonb NOT NULL DEFAULT '{}',                    -- strings and integers by name
    payload      jsonb NOT NULL DEFAULT '{}',                    -- what else there is to say
    happened_at  timestamptz,                                    -- null is when it is accepted
    published_at timestamptz,                                    -- only with --keep: else rows are deleted
    refused      text,                                           -- why no signal can be made of the row
    UNIQUE (name, id),
    CHECK (isfinite(happened_at))
);

CREATE INDEX IF NOT EXISTS kapelle_outbox_waiting ON kapelle_outbox (position)
    WHERE published_at IS NULL AND refused IS NULL;
