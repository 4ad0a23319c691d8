-- Times are whole microseconds since 1970-01-01 UTC. Ids are text, as people meet them in logs.

-- Events that were accepted and what became of them (REL-1). seq is the order of arrival.
CREATE TABLE inbox (
    seq         INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    source      TEXT    NOT NULL,
    received_at INTEGER NOT NULL,
    payload     TEXT    NOT NULL,
    outcome     TEXT
) STRICT;
CREATE INDEX inbox_unfinished ON inbox (seq) WHERE outcome IS NULL;
CREATE INDEX inbox_finished ON inbox (received_at) WHERE outcome IS NOT NULL;

-- What was already handled, so that it is handled once (admission, step 2). A row that is not done is held by its event.
CREATE TABLE ledger (
    key   TEXT    NOT NULL PRIMARY KEY,
    event TEXT    NOT NULL REFERENCES inbox (id) ON DELETE CASCADE,
    done  INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_event ON ledger (event);

-- The revision of each comment that was last judged (ADM-4).
CREATE TABLE revisions (
    comment    TEXT NOT NULL PRIMARY KEY,
    updated_at INTEGER,
    text_sha   TEXT NOT NULL,
    commands   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Texts on their way into sessions (DEL-10). seq is their order; writing: a byte may have been written (DEL-7, REL-3).
CREATE TABLE deliveries (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    target     TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    actor      TEXT,
    text       TEXT    NOT NULL,
    event      TEXT,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    receipt    TEXT    NOT NULL,
    reason     TEXT,
    writing    INTEGER NOT NULL DEFAULT 0
) STRICT;
-- One event makes one delivery, however often it is decided.
CREATE UNIQUE INDEX deliveries_event ON deliveries (event) WHERE event IS NOT NULL;
CREATE INDEX deliveries_queued ON deliveries (target, seq) WHERE receipt = 'queued';
CREATE INDEX deliveries_target ON deliveries (target, seq);
CREATE INDEX deliveries_receipt ON deliveries (receipt, seq);

CREATE TABLE receipts (
    delivery INTEGER NOT NULL REFERENCES deliveries (seq) ON DELETE CASCADE,
    step     INTEGER NOT NULL,
    receipt  TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    evidence TEXT    NOT NULL,
    reason   TEXT,
    PRIMARY KEY (delivery, step)
) STRICT, WITHOUT ROWID;

-- Who may do what only one may do. fence only grows, also across releases.
CREATE TABLE leases (
    name   TEXT    NOT NULL PRIMARY KEY,
    holder TEXT,
    until  INTEGER NOT NULL,
    fence  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Written by a check whether anything can be written (STA-4).
CREATE TABLE probes (only INTEGER PRIMARY KEY CHECK (only = 1), count INTEGER NOT NULL) STRICT;
INSERT INTO probes (only, count) VALUES (1, 0);
