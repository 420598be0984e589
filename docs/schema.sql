TABLE dlq.arrivals
    topic_id uuid NOT NULL
    partition integer NOT NULL
    offset bigint NOT NULL
    message_id uuid NOT NULL
    kind text NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE dlq.dlq_messages WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_insert_scale_factor=0.05, autovacuum_analyze_scale_factor=0.02)
    id uuid NOT NULL DEFAULT gen_random_uuid()
    original_topic character varying(255) NOT NULL
    error_message text NOT NULL
    retry_count integer NOT NULL DEFAULT 0
    max_retries integer NOT NULL DEFAULT 3
    payload jsonb
    status character varying(50) NOT NULL DEFAULT 'PENDING'::character varying
    created_at timestamp with time zone NOT NULL DEFAULT now()
    updated_at timestamp with time zone NOT NULL DEFAULT now()
    last_retry_at timestamp with time zone
    source_topic text
    source_topic_id uuid
    source_partition integer
    source_offset bigint
    source_timestamp timestamp with time zone
    message_key bytea
    raw_value bytea
    headers jsonb
    dialect text
    error_class text
    error_stack text
    consumer_group text
    original_partition integer
    original_offset bigint
    original_timestamp timestamp with time zone
    fingerprint text
    unroutable boolean NOT NULL DEFAULT false
    parent_id uuid
    resolution text
    attempt_no integer NOT NULL DEFAULT 0
    published_sha256 bytea
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
TABLE dlq.dlq_messages_archive
    id uuid NOT NULL DEFAULT gen_random_uuid()
    original_topic character varying(255) NOT NULL
    error_message text NOT NULL
    retry_count integer NOT NULL DEFAULT 0
    max_retries integer NOT NULL DEFAULT 3
    payload jsonb
    status character varying(50) NOT NULL DEFAULT 'PENDING'::character varying
    created_at timestamp with time zone NOT NULL DEFAULT now()
    updated_at timestamp with time zone NOT NULL DEFAULT now()
    last_retry_at timestamp with time zone
    source_topic text
    source_topic_id uuid
    source_partition integer
    source_offset bigint
    source_timestamp timestamp with time zone
    message_key bytea
    raw_value bytea
    headers jsonb
    dialect text
    error_class text
    error_stack text
    consumer_group text
    original_partition integer
    original_offset bigint
    original_timestamp timestamp with time zone
    fingerprint text
    unroutable boolean NOT NULL DEFAULT false
    parent_id uuid
    resolution text
    attempt_no integer NOT NULL DEFAULT 0
    published_sha256 bytea
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
TABLE dlq.message_history
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    message_id uuid NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    event text NOT NULL
    actor text NOT NULL
    reason text
    status_from text
    status_to text
    retry_count integer NOT NULL
    attempt_no integer NOT NULL
    lease_epoch bigint NOT NULL
    topic text
    partition integer
    offset bigint
    detail text
TABLE dlq.source_partitions
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    cluster_id text NOT NULL
    topic text NOT NULL
    topic_id uuid NOT NULL
    partition integer NOT NULL
    first_offset bigint NOT NULL
    next_offset bigint NOT NULL
    high_offset bigint NOT NULL
    backfill_until bigint
    log_start bigint
    log_end bigint
    stored bigint NOT NULL DEFAULT 0
    reopened bigint NOT NULL DEFAULT 0
    folded bigint NOT NULL DEFAULT 0
    not_records bigint NOT NULL DEFAULT 0
    lost bigint NOT NULL DEFAULT 0
    reread bigint NOT NULL DEFAULT 0
    last_error text
    last_error_at timestamp with time zone
    gone boolean NOT NULL DEFAULT false
    stopped boolean NOT NULL DEFAULT false
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    stored_at timestamp with time zone
    last_seek jsonb
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
TABLE dlq.topic_counts WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
    original_topic text NOT NULL
    status text NOT NULL
    minute timestamp with time zone NOT NULL DEFAULT date_trunc('minute'::text, clock_timestamp())
    messages bigint NOT NULL
    arrived bigint NOT NULL
TABLE platform.idle_workers
    channel text NOT NULL
    worker text NOT NULL
    idle_until timestamp with time zone NOT NULL
TABLE platform.leases
    name text NOT NULL
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
TABLE platform.migrations
    slice text NOT NULL
    number integer NOT NULL
    name text NOT NULL
    checksum text NOT NULL
    applied_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE platform.notify_events
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    slice text NOT NULL
    kind text NOT NULL
    subject text NOT NULL
    item_id text NOT NULL
    summary text NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE platform.replicas
    replica_id text NOT NULL
    roles text[] NOT NULL
    kafka_cluster_id text
    version text NOT NULL
    started_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
CONSTRAINT dlq.arrivals arrivals_pkey PRIMARY KEY (topic_id, partition, "offset")
CONSTRAINT dlq.arrivals chk_arrivals_kind CHECK ((kind = ANY (ARRAY['reopened'::text, 'repeated'::text, 'late_failure'::text, 'deleted'::text, 'purged'::text])))
CONSTRAINT dlq.dlq_messages chk_dlq_messages_status CHECK (((status)::text = ANY ((ARRAY['PENDING'::character varying, 'RETRYING'::character varying, 'RESOLVED'::character varying, 'DEAD'::character varying])::text[])))
CONSTRAINT dlq.dlq_messages dlq_messages_pkey PRIMARY KEY (id)
CONSTRAINT dlq.dlq_messages_archive chk_dlq_messages_status CHECK (((status)::text = ANY ((ARRAY['PENDING'::character varying, 'RETRYING'::character varying, 'RESOLVED'::character varying, 'DEAD'::character varying])::text[])))
CONSTRAINT dlq.dlq_messages_archive dlq_messages_archive_pkey PRIMARY KEY (id)
CONSTRAINT dlq.message_history message_history_pkey PRIMARY KEY (message_id, id)
CONSTRAINT dlq.source_partitions chk_source_partitions_offsets CHECK (((first_offset <= high_offset) AND (next_offset <= high_offset)))
CONSTRAINT dlq.source_partitions source_partitions_pkey PRIMARY KEY (id)
CONSTRAINT dlq.source_partitions uq_source_partitions UNIQUE (cluster_id, topic_id, partition)
CONSTRAINT platform.idle_workers idle_workers_pkey PRIMARY KEY (channel, worker)
CONSTRAINT platform.leases leases_pkey PRIMARY KEY (name)
CONSTRAINT platform.migrations migrations_pkey PRIMARY KEY (slice, number)
CONSTRAINT platform.notify_events notify_events_pkey PRIMARY KEY (id)
CONSTRAINT platform.replicas replicas_pkey PRIMARY KEY (replica_id)
CREATE UNIQUE INDEX arrivals_pkey ON dlq.arrivals USING btree (topic_id, partition, "offset")
CREATE UNIQUE INDEX dlq_messages_pkey ON dlq.dlq_messages USING btree (id)
CREATE INDEX idx_dlq_messages_created_at ON dlq.dlq_messages USING btree (created_at, id)
CREATE INDEX idx_dlq_messages_original_topic ON dlq.dlq_messages USING btree (original_topic, status, created_at, id)
CREATE INDEX idx_dlq_messages_source_topic ON dlq.dlq_messages USING btree (source_topic, status, created_at, id) INCLUDE (original_topic)
CREATE INDEX idx_dlq_messages_status ON dlq.dlq_messages USING btree (status, created_at, id)
CREATE UNIQUE INDEX uq_dlq_messages_source ON dlq.dlq_messages USING btree (source_topic_id, source_partition, source_offset)
CREATE INDEX dlq_messages_archive_created_at_idx ON dlq.dlq_messages_archive USING btree (created_at)
CREATE INDEX dlq_messages_archive_original_topic_idx ON dlq.dlq_messages_archive USING btree (original_topic)
CREATE UNIQUE INDEX dlq_messages_archive_pkey ON dlq.dlq_messages_archive USING btree (id)
CREATE INDEX dlq_messages_archive_status_idx ON dlq.dlq_messages_archive USING btree (status)
CREATE INDEX idx_dlq_messages_archive_source ON dlq.dlq_messages_archive USING btree (source_topic_id, source_partition, source_offset)
CREATE UNIQUE INDEX message_history_pkey ON dlq.message_history USING btree (message_id, id)
CREATE UNIQUE INDEX source_partitions_pkey ON dlq.source_partitions USING btree (id)
CREATE UNIQUE INDEX uq_source_partitions ON dlq.source_partitions USING btree (cluster_id, topic_id, partition)
CREATE UNIQUE INDEX idle_workers_pkey ON platform.idle_workers USING btree (channel, worker)
CREATE UNIQUE INDEX leases_pkey ON platform.leases USING btree (name)
CREATE UNIQUE INDEX migrations_pkey ON platform.migrations USING btree (slice, number)
CREATE INDEX idx_notify_events_at ON platform.notify_events USING btree (at)
CREATE UNIQUE INDEX notify_events_pkey ON platform.notify_events USING btree (id)
CREATE UNIQUE INDEX replicas_pkey ON platform.replicas USING btree (replica_id)
SEQUENCE platform.lease_epochs CACHE 1
CREATE TRIGGER trg_dlq_messages_count_deleted AFTER DELETE ON dlq.dlq_messages REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_deleted()
CREATE TRIGGER trg_dlq_messages_count_inserted AFTER INSERT ON dlq.dlq_messages REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_inserted()
CREATE TRIGGER trg_dlq_messages_count_truncated AFTER TRUNCATE ON dlq.dlq_messages FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_truncated()
CREATE TRIGGER trg_dlq_messages_count_updated AFTER UPDATE ON dlq.dlq_messages REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_updated()
CREATE TRIGGER trg_dlq_messages_updated_at BEFORE UPDATE ON dlq.dlq_messages FOR EACH ROW EXECUTE FUNCTION dlq.update_updated_at()
CREATE OR REPLACE PROCEDURE dlq.archive_old_dlq_messages(IN p_retention_days integer DEFAULT 30, IN p_batch_size integer DEFAULT 1000)
 LANGUAGE plpgsql
AS $procedure$
DECLARE
    v_cutoff TIMESTAMPTZ;
    v_archived_count INT := 0;
    v_batch_count INT;
    v_after_created TIMESTAMPTZ := '-infinity';
    v_after_id UUID := '00000000-0000-0000-0000-000000000000';
BEGIN
    v_cutoff := NOW() - (p_retention_days || ' days')::INTERVAL;

    LOOP
        -- One statement moves the rows: what it deletes is what it archives. Each batch begins behind the one
        -- before, so all of them together are one pass over the table.
        WITH to_archive AS (
            SELECT id FROM dlq.dlq_messages
            WHERE status IN ('RESOLVED', 'DEAD')
              AND updated_at < v_cutoff
              AND (created_at, id) > (v_after_created, v_after_id)
            ORDER BY created_at, id
            LIMIT p_batch_size
            FOR UPDATE SKIP LOCKED
        ),
        moved AS (
            DELETE FROM dlq.dlq_messages m
            USING to_archive ta
            WHERE m.id = ta.id
            RETURNING m.id, m.original_topic, m.error_message, m.retry_count, m.max_retries,
                      m.payload, m.status, m.created_at, m.updated_at, m.last_retry_at,
                      m.source_topic, m.source_topic_id, m.source_partition, m.source_offset,
                      m.source_timestamp, m.message_key, m.raw_value, m.headers, m.dialect,
                      m.error_class, m.error_stack, m.consumer_group, m.original_partition,
                      m.original_offset, m.original_timestamp, m.fingerprint, m.unroutable,
                      m.parent_id, m.resolution, m.attempt_no, m.published_sha256,
                      m.lease_owner, m.lease_until, m.lease_epoch, m.lease_lost
        ),
        archived AS (
            INSERT INTO dlq.dlq_messages_archive
                (id, original_topic, error_message, retry_count, max_retries, payload, status,
                 created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                 source_partition, source_offset, source_timestamp, message_key, raw_value,
                 headers, dialect, error_class, error_stack, consumer_group, original_partition,
                 original_offset, original_timestamp, fingerprint, unroutable, parent_id,
                 resolution, attempt_no, published_sha256, lease_owner, lease_until,
                 lease_epoch, lease_lost)
            SELECT id, original_topic, error_message, retry_count, max_retries, payload, status,
                   created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                   source_partition, source_offset, source_timestamp, message_key, raw_value,
                   headers, dialect, error_class, error_stack, consumer_group,
                   original_partition, original_offset, original_timestamp, fingerprint,
                   unroutable, parent_id, resolution, attempt_no, published_sha256, lease_owner,
                   lease_until, lease_epoch, lease_lost
            FROM moved
            RETURNING created_at, id
        )
        SELECT COUNT(*),
               (ARRAY_AGG(created_at ORDER BY created_at DESC, id DESC))[1],
               (ARRAY_AGG(id ORDER BY created_at DESC, id DESC))[1]
        INTO v_batch_count, v_after_created, v_after_id
        FROM archived;

        v_archived_count := v_archived_count + v_batch_count;
        EXIT WHEN v_batch_count = 0;
        COMMIT;
    END LOOP;

    RAISE NOTICE 'Archived % DLQ messages older than % days', v_archived_count, p_retention_days;
END;
$procedure$

CREATE OR REPLACE FUNCTION dlq.compact_topic_counts()
 RETURNS void
 LANGUAGE sql
AS $function$
    WITH folded AS (
        DELETE FROM dlq.topic_counts RETURNING original_topic, status, minute, messages, arrived
    )
    INSERT INTO dlq.topic_counts (original_topic, status, minute, messages, arrived)
    SELECT original_topic, status, kept_minute, SUM(messages), SUM(arrived)
    FROM (
        SELECT original_topic, status, messages, arrived,
               CASE WHEN minute < NOW() - INTERVAL '1 hour' THEN 'epoch'::timestamptz ELSE minute END AS kept_minute
        FROM folded
    ) AS by_minute
    GROUP BY original_topic, status, kept_minute
    HAVING SUM(messages) <> 0 OR (SUM(arrived) <> 0 AND kept_minute <> 'epoch'::timestamptz);
$function$

CREATE OR REPLACE FUNCTION dlq.count_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
    SELECT original_topic, status, -COUNT(*), 0 FROM old_rows GROUP BY original_topic, status;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.count_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
    SELECT original_topic, status, COUNT(*), COUNT(*) FROM new_rows GROUP BY original_topic, status;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.count_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    TRUNCATE dlq.topic_counts;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.count_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
    SELECT original_topic, status, SUM(change), 0
    FROM (
        SELECT original_topic, status, -1 AS change FROM old_rows
        UNION ALL
        SELECT original_topic, status, 1 AS change FROM new_rows
    ) AS changes
    GROUP BY original_topic, status
    HAVING SUM(change) <> 0;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE PROCEDURE dlq.purge_archived_dlq_messages(IN p_purge_days integer DEFAULT 365, IN p_batch_size integer DEFAULT 1000)
 LANGUAGE plpgsql
AS $procedure$
DECLARE
    v_cutoff TIMESTAMPTZ;
    v_purged_count INT := 0;
    v_batch_count INT;
    v_after_created TIMESTAMPTZ := '-infinity';
    v_after_id UUID := '00000000-0000-0000-0000-000000000000';
BEGIN
    v_cutoff := NOW() - (p_purge_days || ' days')::INTERVAL;

    LOOP
        -- In one pass over the table, however many batches it takes.
        WITH to_purge AS (
            SELECT id FROM dlq.dlq_messages_archive
            WHERE updated_at < v_cutoff
              AND (created_at, id) > (v_after_created, v_after_id)
            ORDER BY created_at, id
            LIMIT p_batch_size
            FOR UPDATE SKIP LOCKED
        ),
        purged AS (
            DELETE FROM dlq.dlq_messages_archive a
            USING to_purge tp
            WHERE a.id = tp.id
            RETURNING a.id, a.created_at, a.source_topic_id, a.source_partition, a.source_offset
        ),
        remembered AS (
            INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
            SELECT source_topic_id, source_partition, source_offset, id, 'purged'
            FROM purged
            WHERE source_topic_id IS NOT NULL
            ON CONFLICT DO NOTHING
        ),
        forgotten AS (
            DELETE FROM dlq.message_history h
            USING purged p
            WHERE h.message_id = p.id
        )
        SELECT COUNT(*),
               (ARRAY_AGG(created_at ORDER BY created_at DESC, id DESC))[1],
               (ARRAY_AGG(id ORDER BY created_at DESC, id DESC))[1]
        INTO v_batch_count, v_after_created, v_after_id
        FROM purged;

        v_purged_count := v_purged_count + v_batch_count;
        EXIT WHEN v_batch_count = 0;
        COMMIT;
    END LOOP;

    -- What lies below the log start can never be read again and need not be recognised. A topic that is merely
    -- not listed any more may come back.
    LOOP
        DELETE FROM dlq.arrivals
        WHERE ctid = ANY(ARRAY(
            SELECT a.ctid
            FROM dlq.arrivals a
            JOIN dlq.source_partitions p ON p.topic_id = a.topic_id AND p.partition = a.partition
            WHERE a."offset" < p.log_start
            LIMIT p_batch_size
        ));
        GET DIAGNOSTICS v_batch_count = ROW_COUNT;
        EXIT WHEN v_batch_count = 0;
        COMMIT;
    END LOOP;

    RAISE NOTICE 'Purged % archived DLQ messages older than % days', v_purged_count, p_purge_days;
END;
$procedure$

CREATE OR REPLACE FUNCTION dlq.update_updated_at()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    NEW.updated_at = NOW();
    RETURN NEW;
END;
$function$

