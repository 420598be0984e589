DOMAIN jobs.dedupe_key text CHECK (((length(VALUE) >= 1) AND (length(VALUE) <= 500)))
DOMAIN jobs.job_resolution text CHECK ((VALUE = ANY (ARRAY['cancelled'::text, 'discarded'::text])))
DOMAIN jobs.job_status text CHECK ((VALUE = ANY (ARRAY['pending'::text, 'running'::text, 'completed'::text, 'failed'::text, 'dead_letter'::text])))
DOMAIN jobs.max_retries integer CHECK ((VALUE >= 1))
DOMAIN jobs.priority integer CHECK (((VALUE >= 0) AND (VALUE <= 100)))
DOMAIN jobs.queue_name text CHECK (((length(VALUE) >= 1) AND (length(VALUE) <= 100)))
DOMAIN jobs.queue_name text CHECK (((VALUE COLLATE "C") ~ '^[a-z][a-z0-9_.-]{0,99}$'::text)) NOT VALID
DOMAIN jobs.retry_count integer CHECK ((VALUE >= 0))
TABLE access.api_keys
    id text NOT NULL
    secret_sha256 bytea NOT NULL
    name text NOT NULL
    role text NOT NULL
    scope jsonb
    maker text NOT NULL
    maker_name text NOT NULL
    maker_roles text[] NOT NULL
    maker_roles_at timestamp with time zone NOT NULL
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    expires_at timestamp with time zone NOT NULL
    last_used_at timestamp with time zone
    revoked_at timestamp with time zone
    revoked_by text
TABLE access.known_users
    id text NOT NULL
    type text NOT NULL
    name text NOT NULL
    roles text[] NOT NULL
    roles_at timestamp with time zone NOT NULL
TABLE access.sessions
    id_sha256 bytea NOT NULL
    subject text NOT NULL
    name text NOT NULL
    roles text[] NOT NULL
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    last_seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    expires_at timestamp with time zone NOT NULL
    address text
    agent text
TABLE audit.dropped_months
    kept text NOT NULL
    begins_at timestamp with time zone NOT NULL
    ends_at timestamp with time zone NOT NULL
    events bigint NOT NULL
    dropped_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE audit.events
    seq bigint NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    kept text NOT NULL DEFAULT 'usual'::text
    actor_type text NOT NULL
    actor_id text NOT NULL
    actor_name text NOT NULL
    roles text[] NOT NULL DEFAULT '{}'::text[]
    action text NOT NULL
    outcome text NOT NULL
    reason text
    resource text NOT NULL
    topics text[]
    queues text[]
    destinations text[]
    workflows text[]
    operation_id uuid
    item_count integer NOT NULL DEFAULT 1
    detail jsonb
    request_id text
    trace_id text
    address text
    agent text
TABLE audit.seals
    block bigint NOT NULL
    after_seq bigint NOT NULL
    last_seq bigint NOT NULL
    kept text NOT NULL
    month date NOT NULL
    events integer NOT NULL
    previous bytea NOT NULL
    hash bytea NOT NULL
    sealed_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    rows_sha256 bytea NOT NULL
TABLE console.inbox_entries WITH (fillfactor=70)
    id text NOT NULL
    kind text NOT NULL
    slice text NOT NULL
    title text NOT NULL
    place jsonb NOT NULL
    topics text[]
    queues text[]
    destinations text[]
    workflows text[]
    link text NOT NULL
    item_count bigint NOT NULL
    oldest_at timestamp with time zone
    newest_at timestamp with time zone
    first_seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    gone_at timestamp with time zone
    gone_by text
    gone_action text
    gone_reason text
    back_at timestamp with time zone
    owner text
    owner_name text
    snooze_count bigint
    snoozed_by text
    snoozed_at timestamp with time zone
    done_count bigint
    done_by text
    done_at timestamp with time zone
    done_reason text
TABLE console.inbox_notes
    id uuid NOT NULL DEFAULT platform.new_id()
    entry_id text NOT NULL
    author text NOT NULL
    author_name text NOT NULL
    text text NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE console.views
    id uuid NOT NULL DEFAULT platform.new_id()
    owner text NOT NULL
    owner_name text NOT NULL
    name text NOT NULL
    url text NOT NULL
    shared boolean NOT NULL DEFAULT false
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE dlq.arrivals
    topic_id uuid NOT NULL
    partition integer NOT NULL
    offset bigint NOT NULL
    message_id uuid NOT NULL
    kind text NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE dlq.bulk_acts
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    person text NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    messages integer NOT NULL
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
    source_compression text
    routed boolean NOT NULL DEFAULT false
    next_attempt_at timestamp with time zone
    retry_policy text
    version integer NOT NULL DEFAULT 0
    data_key integer
    key_hmac bytea
    record_hmac bytea
    removed_parts text[]
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
    source_compression text
    routed boolean NOT NULL DEFAULT false
    next_attempt_at timestamp with time zone
    retry_policy text
    version integer NOT NULL DEFAULT 0
    data_key integer
    key_hmac bytea
    record_hmac bytea
    removed_parts text[]
TABLE dlq.fingerprints
    fingerprint text NOT NULL
    version integer
    class text
    template text
    frame text
    first_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    last_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE dlq.group_changes WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
    fingerprint text NOT NULL
    original_topic text NOT NULL
    consumer_group text NOT NULL
    status text NOT NULL
    hour timestamp with time zone NOT NULL DEFAULT date_trunc('hour'::text, clock_timestamp(), 'UTC'::text)
    messages bigint NOT NULL
    arrived bigint NOT NULL
    first_at timestamp with time zone
    last_at timestamp with time zone
TABLE dlq.group_counts
    fingerprint text NOT NULL
    original_topic text NOT NULL
    consumer_group text NOT NULL
    status text NOT NULL
    hour timestamp with time zone NOT NULL
    messages bigint NOT NULL
    arrived bigint NOT NULL
TABLE dlq.index_queue WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000)
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    is_backfill boolean NOT NULL DEFAULT false
    queued_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    message_ids uuid[] NOT NULL
TABLE dlq.message_facets WITH (autovacuum_vacuum_insert_scale_factor=0.05, autovacuum_analyze_scale_factor=0.02)
    message_id uuid NOT NULL
    created_at timestamp with time zone NOT NULL
    error_class text
    key_hash bytea
    consumer_group text
    search tsvector
    trace_id text
TABLE dlq.message_facets_archive
    message_id uuid NOT NULL
    created_at timestamp with time zone NOT NULL
    error_class text
    key_hash bytea
    consumer_group text
    search tsvector
    trace_id text
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
    target_topic text
    published_sha256 bytea
    version integer
    original_topic text
TABLE dlq.message_versions
    message_id uuid NOT NULL
    version integer NOT NULL
    key bytea
    value bytea
    headers jsonb
    target text NOT NULL
    actor text NOT NULL
    reason text
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    value_sha256 bytea DEFAULT sha256(value)
    data_key integer
    key_hmac bytea
    record_hmac bytea
    removed_parts text[]
TABLE dlq.redrive_items WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05)
    redrive_id uuid NOT NULL
    position integer NOT NULL
    message_id uuid NOT NULL
    planned_epoch bigint NOT NULL
    target text NOT NULL
    key_hash bytea
    stage integer
    claim_epoch bigint
    outcome text
    attempt_no integer
    partition integer
    offset bigint
    reason text
    settled_at timestamp with time zone
    fingerprint text
    sha256 bytea
    came_back_at timestamp with time zone
TABLE dlq.redrives WITH (fillfactor=50)
    id uuid NOT NULL
    kind text NOT NULL DEFAULT 'retry'::text
    state text NOT NULL DEFAULT 'planning'::text
    state_reason text
    filter jsonb NOT NULL
    options jsonb NOT NULL
    actor text NOT NULL
    reason text NOT NULL
    operation_id text
    frozen_at timestamp with time zone
    counts jsonb
    stage integer
    watch_until timestamp with time zone
    receipt jsonb
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    planned_at timestamp with time zone
    started_at timestamp with time zone
    finished_at timestamp with time zone
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
    revision bigint NOT NULL DEFAULT 1
    watched_targets text[]
    counted_from timestamp with time zone
    paused_at timestamp with time zone
    waiting_for text
    policy text
    stopped_by text
    topics text[]
    started_by text
    editors text[] NOT NULL DEFAULT '{}'::text[]
    approval jsonb
TABLE dlq.retry_policies WITH (fillfactor=50)
    name text NOT NULL
    place integer
    definition jsonb NOT NULL
    state text NOT NULL DEFAULT 'active'::text
    state_reason text
    state_actor text
    state_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    redrive_id uuid
    last_redrive_id uuid
    round_at timestamp with time zone
    failures integer NOT NULL DEFAULT 0
    not_before timestamp with time zone
    last_result text
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
    log_stable_end bigint
    held_back_since timestamp with time zone
    denied boolean NOT NULL DEFAULT false
    control bigint NOT NULL DEFAULT 0
    aborted bigint NOT NULL DEFAULT 0
    gaps bigint NOT NULL DEFAULT 0
    forgotten jsonb
TABLE dlq.topic_counts WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
    original_topic text NOT NULL
    status text NOT NULL
    minute timestamp with time zone NOT NULL DEFAULT date_trunc('minute'::text, clock_timestamp())
    messages bigint NOT NULL
    arrived bigint NOT NULL
TABLE dlq.value_parts WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100)
    id uuid NOT NULL
    n integer NOT NULL
    bytes bytea NOT NULL
TABLE jobs.cron_ticks
    name text NOT NULL
    tick_at timestamp with time zone NOT NULL
    schedule text NOT NULL
    job_id uuid
    fired_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE jobs.job_actions
    job_id uuid NOT NULL
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    action text NOT NULL
    status_from text NOT NULL
    status_to text NOT NULL
    actor text NOT NULL
    reason text
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE jobs.job_attempts
    job_id uuid NOT NULL
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    retry_count integer NOT NULL
    status_to text NOT NULL
    error text NOT NULL
    worker text
    lease_epoch bigint NOT NULL
    started_at timestamp with time zone
    ended_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    error_class text
    stack text
    fingerprint text
TABLE jobs.job_queue WITH (autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_insert_scale_factor=0.1, autovacuum_analyze_scale_factor=0.05)
    job_id uuid NOT NULL DEFAULT platform.new_id()
    queue jobs.queue_name NOT NULL
    payload jsonb NOT NULL
    status jobs.job_status NOT NULL DEFAULT 'pending'::text
    retry_count jobs.retry_count NOT NULL DEFAULT 0
    max_retries jobs.max_retries NOT NULL DEFAULT 3
    error_message text
    result jsonb
    dedupe_key jobs.dedupe_key
    priority jobs.priority NOT NULL DEFAULT 0
    run_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    sort_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    started_at timestamp with time zone
    completed_at timestamp with time zone
    resolution jobs.job_resolution
    deferrals integer NOT NULL DEFAULT 0
    progress jsonb
    trace text
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
    fingerprint text
    created_by text
    claimed_by text
TABLE jobs.queues
    queue text NOT NULL
    max_retries integer NOT NULL DEFAULT 3
    timeout_ms integer NOT NULL DEFAULT 60000
    backoff_initial_ms integer NOT NULL DEFAULT 2000
    backoff_max_ms integer NOT NULL DEFAULT 300000
    backoff_jitter double precision NOT NULL DEFAULT 0.1
    max_deferrals integer NOT NULL DEFAULT 100
    keep_completed boolean NOT NULL DEFAULT true
    max_running integer
    rate_count integer
    rate_window_ms integer
    is_configured boolean NOT NULL DEFAULT false
    paused boolean NOT NULL DEFAULT false
    paused_at timestamp with time zone
    paused_by text
    paused_reason text
    window_at timestamp with time zone
    window_taken integer NOT NULL DEFAULT 0
    throttle jsonb
    updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    circuit jsonb
TABLE outbox.destination_state WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100)
    destination text NOT NULL
    version bigint NOT NULL DEFAULT 0
    rate double precision
    peak double precision
    cut_at timestamp with time zone
    hold_until timestamp with time zone
    window_at timestamp with time zone
    window_taken integer
    opened_at timestamp with time zone
    open_reason text
    probe_interval_ms integer
    next_probe_at timestamp with time zone
    last_probe_id bigint
    updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE outbox.idempo_ledger WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000)
    idempotency_key text NOT NULL
    request_digest text NOT NULL
    result_digest text
    expires_at timestamp with time zone NOT NULL DEFAULT 'infinity'::timestamp with time zone
    outbox_id bigint NOT NULL
    status text NOT NULL DEFAULT 'accepted'::text
    http_status integer NOT NULL
    response_payload json NOT NULL
    outside_id text
    created_at timestamp with time zone NOT NULL DEFAULT now()
    updated_at timestamp with time zone NOT NULL DEFAULT now()
TABLE outbox.idempo_ledger_archive
    idempotency_key text NOT NULL
    request_digest text NOT NULL
    result_digest text
    expires_at timestamp with time zone NOT NULL
    outbox_id bigint NOT NULL
    status text NOT NULL
    http_status integer NOT NULL
    response_payload json NOT NULL
    outside_id text
    created_at timestamp with time zone NOT NULL
    updated_at timestamp with time zone NOT NULL
    archived_at timestamp with time zone NOT NULL
TABLE outbox.outbox_audit
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    outbox_id bigint NOT NULL
    status_from text
    status_to text NOT NULL
    retry_count integer NOT NULL
    last_error text
    idempotency_key text NOT NULL
    trace_id text
    broker_order_id text
    lease_epoch bigint
    actor text NOT NULL
    reason text
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE outbox.outbox_orders WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000, autovacuum_analyze_scale_factor=0.05)
    id bigint NOT NULL DEFAULT nextval('outbox.outbox_orders_id_seq'::regclass)
    idempotency_key text NOT NULL
    request_json jsonb NOT NULL
    request_digest text NOT NULL
    status text NOT NULL
    retry_count integer NOT NULL DEFAULT 0
    next_attempt_at timestamp with time zone NOT NULL
    last_error text
    created_at timestamp with time zone NOT NULL DEFAULT now()
    updated_at timestamp with time zone NOT NULL DEFAULT now()
    destination text NOT NULL
    ordering_key text
    ordering_seq bigint
    held boolean NOT NULL DEFAULT false
    trace_id text
    traceparent text
    first_sent_at timestamp with time zone
    in_doubt boolean NOT NULL DEFAULT false
    response jsonb
    resolution text
    supersedes_id bigint
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
    fingerprint text
    created_by text
TABLE outbox.outbox_orders_archive
    id bigint NOT NULL
    idempotency_key text NOT NULL
    request_json jsonb NOT NULL
    request_digest text NOT NULL
    status text NOT NULL
    retry_count integer NOT NULL
    next_attempt_at timestamp with time zone NOT NULL
    last_error text
    created_at timestamp with time zone NOT NULL
    updated_at timestamp with time zone NOT NULL
    destination text NOT NULL
    ordering_key text
    ordering_seq bigint
    held boolean NOT NULL
    trace_id text
    traceparent text
    first_sent_at timestamp with time zone
    in_doubt boolean NOT NULL
    response jsonb
    resolution text
    supersedes_id bigint
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL
    lease_lost boolean NOT NULL
    archived_at timestamp with time zone NOT NULL
    fingerprint text
    created_by text
TABLE platform.data_keys
    id integer NOT NULL GENERATED ALWAYS AS IDENTITY
    slice text NOT NULL
    purpose text NOT NULL
    month date NOT NULL
    turn integer NOT NULL DEFAULT 0
    wrapped text NOT NULL
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    rewrapped_at timestamp with time zone
TABLE platform.dlq_positions
    cluster_id text NOT NULL
    topic text NOT NULL
    topic_id uuid NOT NULL
    partition integer NOT NULL
    next_offset bigint NOT NULL
    stopped boolean NOT NULL
    saved_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
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
    succeeded_at timestamp with time zone
TABLE platform.migrations
    slice text NOT NULL
    number integer NOT NULL
    name text NOT NULL
    checksum text NOT NULL
    applied_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE platform.notify_events WITH (autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000)
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    slice text NOT NULL
    kind text NOT NULL
    subject text NOT NULL
    item_id text NOT NULL
    summary text NOT NULL
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE platform.notify_groups
    notifier text NOT NULL
    slice text NOT NULL
    kind text NOT NULL
    subject text NOT NULL
    told_at timestamp with time zone NOT NULL
    held_count bigint NOT NULL DEFAULT 0
    held_first_at timestamp with time zone
    held_last_at timestamp with time zone
    held_samples jsonb NOT NULL DEFAULT '[]'::jsonb
TABLE platform.replicas
    replica_id text NOT NULL
    roles text[] NOT NULL
    kafka_cluster_id text
    version text NOT NULL
    started_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE saga.saga_start_keys
    workflow_name character varying(255) NOT NULL
    key text NOT NULL
    digest text NOT NULL
    saga_id uuid NOT NULL
    expires_at timestamp with time zone NOT NULL
    created_by text
TABLE saga.saga_states WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05)
    id uuid NOT NULL DEFAULT platform.new_id()
    workflow_name character varying(255) NOT NULL
    current_step integer NOT NULL DEFAULT 0
    status character varying(50) NOT NULL DEFAULT 'STARTED'::character varying
    payload jsonb
    correlation_id character varying(255)
    initiated_by character varying(255)
    error_message text
    created_at timestamp with time zone NOT NULL DEFAULT now()
    updated_at timestamp with time zone NOT NULL DEFAULT now()
    definition_hash text
    step_outputs jsonb NOT NULL DEFAULT '{}'::jsonb
    wake_at timestamp with time zone
    deadline_at timestamp with time zone
    deadline_over boolean NOT NULL DEFAULT false
    polls integer
    failed_polls integer
    abort_requested text
    abort_actor text
    abort_reason text
    abort_at timestamp with time zone
    pivot_opened boolean NOT NULL DEFAULT false
    compensation text NOT NULL DEFAULT 'none'::text
    needs_attention boolean NOT NULL DEFAULT false
    stuck_step integer
    stuck_op text
    stuck_reason text
    trace text
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL DEFAULT 0
    lease_lost boolean NOT NULL DEFAULT false
    failed_rounds integer NOT NULL DEFAULT 0
    runs_alone boolean NOT NULL DEFAULT false
    phase text NOT NULL DEFAULT 
CASE
    WHEN (((status)::text = 'STARTED'::text) AND (lease_epoch = 0)) THEN 'NEW'::character varying
    WHEN ((status)::text = ANY ((ARRAY['STARTED'::character varying, 'RUNNING'::character varying])::text[])) THEN 'FORWARD'::character varying
    ELSE status
END
    waiting_for text
    waiting_since timestamp with time zone
    fingerprint text
    created_by text
TABLE saga.saga_states_archive
    id uuid NOT NULL
    workflow_name character varying(255) NOT NULL
    current_step integer NOT NULL
    status character varying(50) NOT NULL
    payload jsonb
    correlation_id character varying(255)
    initiated_by character varying(255)
    error_message text
    created_at timestamp with time zone NOT NULL
    updated_at timestamp with time zone NOT NULL
    definition_hash text
    step_outputs jsonb NOT NULL
    wake_at timestamp with time zone
    deadline_at timestamp with time zone
    deadline_over boolean NOT NULL
    polls integer
    failed_polls integer
    abort_requested text
    abort_actor text
    abort_reason text
    abort_at timestamp with time zone
    pivot_opened boolean NOT NULL
    compensation text NOT NULL
    needs_attention boolean NOT NULL
    stuck_step integer
    stuck_op text
    stuck_reason text
    trace text
    lease_owner text
    lease_until timestamp with time zone
    lease_epoch bigint NOT NULL
    lease_lost boolean NOT NULL
    failed_rounds integer NOT NULL
    runs_alone boolean NOT NULL
    archived_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    waiting_for text
    waiting_since timestamp with time zone
    fingerprint text
    created_by text
TABLE saga.saga_step_logs WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.1)
    id uuid NOT NULL DEFAULT platform.new_id()
    saga_id uuid NOT NULL
    step_index integer NOT NULL
    step_name character varying(255) NOT NULL
    action character varying(50) NOT NULL
    status character varying(50)
    request_payload jsonb
    response_payload jsonb
    error_message text
    started_at timestamp with time zone NOT NULL DEFAULT now()
    completed_at timestamp with time zone
    updated_at timestamp with time zone NOT NULL DEFAULT now()
    attempt integer NOT NULL
    answer text
    is_unsent boolean NOT NULL DEFAULT false
    is_last boolean NOT NULL DEFAULT false
    actor text
    reason text
    is_down boolean NOT NULL DEFAULT false
    spent_ms bigint NOT NULL DEFAULT 1
    fingerprint text
TABLE saga.saga_step_logs_archive
    id uuid NOT NULL
    saga_id uuid NOT NULL
    step_index integer NOT NULL
    step_name character varying(255) NOT NULL
    action character varying(50) NOT NULL
    status character varying(50)
    request_payload jsonb
    response_payload jsonb
    error_message text
    started_at timestamp with time zone NOT NULL
    completed_at timestamp with time zone
    updated_at timestamp with time zone NOT NULL
    attempt integer NOT NULL
    answer text
    is_unsent boolean NOT NULL
    is_last boolean NOT NULL
    actor text
    reason text
    is_down boolean NOT NULL DEFAULT false
    spent_ms bigint NOT NULL DEFAULT 1
    fingerprint text
TABLE saga.service_circuits
    service text NOT NULL
    is_open boolean NOT NULL DEFAULT true
    since timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    reason text NOT NULL DEFAULT ''::text
    probes integer NOT NULL DEFAULT 0
    probe_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
    probe_saga uuid
    probe_until timestamp with time zone
TABLE saga.workflow_definitions
    hash text NOT NULL
    name character varying(255) NOT NULL
    definition jsonb NOT NULL
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
TABLE saga.workflows
    name character varying(255) NOT NULL
    current_hash text NOT NULL
    updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
CONSTRAINT access.api_keys api_keys_id_check CHECK ((id ~ '^[a-z0-9]{8}$'::text))
CONSTRAINT access.api_keys api_keys_pkey PRIMARY KEY (id)
CONSTRAINT access.api_keys api_keys_secret_sha256_check CHECK ((octet_length(secret_sha256) = 32))
CONSTRAINT access.known_users known_users_pkey PRIMARY KEY (id)
CONSTRAINT access.known_users known_users_type_check CHECK ((type = ANY (ARRAY['user'::text, 'service'::text])))
CONSTRAINT access.sessions sessions_id_sha256_check CHECK ((octet_length(id_sha256) = 32))
CONSTRAINT access.sessions sessions_pkey PRIMARY KEY (id_sha256)
CONSTRAINT audit.dropped_months dropped_months_pkey PRIMARY KEY (kept, begins_at)
CONSTRAINT audit.events events_actor_type_check CHECK ((actor_type = ANY (ARRAY['user'::text, 'api_key'::text, 'service'::text, 'local'::text, 'policy'::text, 'sdk'::text, 'cli'::text, 'system'::text])))
CONSTRAINT audit.events events_detail_check CHECK (((jsonb_typeof(detail) = 'object'::text) AND (NOT jsonb_path_exists(detail, '$.**?(@.type() == "number" && (@ > 9007199254740991 || @ < -9007199254740991))'::jsonpath))))
CONSTRAINT audit.events events_item_count_check CHECK ((item_count >= 0))
CONSTRAINT audit.events events_kept_check CHECK ((kept = ANY (ARRAY['usual'::text, 'long'::text])))
CONSTRAINT audit.events events_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'failure'::text, 'denied'::text, 'started'::text, 'unknown'::text])))
CONSTRAINT audit.events events_pkey PRIMARY KEY (seq, kept, at)
CONSTRAINT audit.seals seals_block_check CHECK ((block > 0))
CONSTRAINT audit.seals seals_check CHECK ((last_seq > after_seq))
CONSTRAINT audit.seals seals_events_check CHECK ((events > 0))
CONSTRAINT audit.seals seals_hash_check CHECK ((octet_length(hash) = 32))
CONSTRAINT audit.seals seals_hash_key UNIQUE (hash)
CONSTRAINT audit.seals seals_pkey PRIMARY KEY (block)
CONSTRAINT audit.seals seals_previous_check CHECK ((octet_length(previous) = 32))
CONSTRAINT audit.seals seals_rows_sha256_check CHECK ((octet_length(rows_sha256) = 32))
CONSTRAINT console.inbox_entries inbox_entries_check CHECK ((num_nulls(snooze_count, snoozed_by, snoozed_at) = ANY (ARRAY[0, 3])))
CONSTRAINT console.inbox_entries inbox_entries_check1 CHECK ((num_nulls(done_count, done_by, done_at, done_reason) = ANY (ARRAY[0, 4])))
CONSTRAINT console.inbox_entries inbox_entries_check2 CHECK (((snooze_count IS NULL) OR (done_count IS NULL)))
CONSTRAINT console.inbox_entries inbox_entries_check3 CHECK (((owner IS NULL) = (owner_name IS NULL)))
CONSTRAINT console.inbox_entries inbox_entries_id_check CHECK ((id ~ '^[a-z_]{1,20}\.[A-Za-z0-9_-]{32}$'::text))
CONSTRAINT console.inbox_entries inbox_entries_pkey PRIMARY KEY (id)
CONSTRAINT console.inbox_entries inbox_entries_title_check CHECK ((octet_length(title) <= 2000))
CONSTRAINT console.inbox_notes inbox_notes_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES console.inbox_entries(id) ON DELETE CASCADE
CONSTRAINT console.inbox_notes inbox_notes_pkey PRIMARY KEY (id)
CONSTRAINT console.inbox_notes inbox_notes_text_check CHECK (((length(text) >= 1) AND (length(text) <= 2000)))
CONSTRAINT console.views views_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100)))
CONSTRAINT console.views views_owner_name_key UNIQUE (owner, name)
CONSTRAINT console.views views_pkey PRIMARY KEY (id)
CONSTRAINT console.views views_url_check CHECK ((((length(url) >= 1) AND (length(url) <= 2000)) AND (url ~~ '/%'::text) AND (url !~~ '//%'::text)))
CONSTRAINT dlq.arrivals arrivals_pkey PRIMARY KEY (topic_id, partition, "offset")
CONSTRAINT dlq.arrivals chk_arrivals_kind CHECK ((kind = ANY (ARRAY['reopened'::text, 'repeated'::text, 'late_failure'::text, 'deleted'::text, 'purged'::text])))
CONSTRAINT dlq.bulk_acts bulk_acts_pkey PRIMARY KEY (id)
CONSTRAINT dlq.dlq_messages chk_dlq_messages_status CHECK (((status)::text = ANY ((ARRAY['PENDING'::character varying, 'RETRYING'::character varying, 'RESOLVED'::character varying, 'DEAD'::character varying])::text[])))
CONSTRAINT dlq.dlq_messages dlq_messages_pkey PRIMARY KEY (id)
CONSTRAINT dlq.dlq_messages_archive chk_dlq_messages_status CHECK (((status)::text = ANY ((ARRAY['PENDING'::character varying, 'RETRYING'::character varying, 'RESOLVED'::character varying, 'DEAD'::character varying])::text[])))
CONSTRAINT dlq.dlq_messages_archive dlq_messages_archive_pkey PRIMARY KEY (id)
CONSTRAINT dlq.fingerprints fingerprints_pkey PRIMARY KEY (fingerprint)
CONSTRAINT dlq.group_counts group_counts_pkey PRIMARY KEY (fingerprint, original_topic, consumer_group, status, hour)
CONSTRAINT dlq.index_queue index_queue_pkey PRIMARY KEY (is_backfill, queued_at, id)
CONSTRAINT dlq.message_facets message_facets_pkey PRIMARY KEY (message_id)
CONSTRAINT dlq.message_facets_archive message_facets_archive_pkey PRIMARY KEY (message_id)
CONSTRAINT dlq.message_history message_history_pkey PRIMARY KEY (message_id, id)
CONSTRAINT dlq.message_versions message_versions_pkey PRIMARY KEY (message_id, version)
CONSTRAINT dlq.redrive_items chk_redrive_items_outcome CHECK ((outcome = ANY (ARRAY['published'::text, 'not_published'::text, 'came_back'::text, 'failed'::text, 'unknown'::text, 'skipped'::text, 'cancelled'::text, 'applied'::text])))
CONSTRAINT dlq.redrive_items redrive_items_pkey PRIMARY KEY (redrive_id, "position")
CONSTRAINT dlq.redrives chk_redrives_kind CHECK ((kind = ANY (ARRAY['retry'::text, 'reopen'::text, 'dead'::text, 'delete'::text])))
CONSTRAINT dlq.redrives chk_redrives_state CHECK ((state = ANY (ARRAY['planning'::text, 'planned'::text, 'awaiting_approval'::text, 'running'::text, 'paused'::text, 'stopped'::text, 'finished'::text, 'cancelled'::text, 'failed'::text, 'expired'::text])))
CONSTRAINT dlq.redrives redrives_pkey PRIMARY KEY (id)
CONSTRAINT dlq.retry_policies chk_retry_policies_state CHECK ((state = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text])))
CONSTRAINT dlq.retry_policies retry_policies_pkey PRIMARY KEY (name)
CONSTRAINT dlq.source_partitions chk_source_partitions_offsets CHECK (((first_offset <= high_offset) AND (next_offset <= high_offset)))
CONSTRAINT dlq.source_partitions source_partitions_pkey PRIMARY KEY (id)
CONSTRAINT dlq.source_partitions uq_source_partitions UNIQUE (cluster_id, topic_id, partition)
CONSTRAINT dlq.value_parts value_parts_pkey PRIMARY KEY (id, n)
CONSTRAINT jobs.cron_ticks cron_ticks_pkey PRIMARY KEY (name, tick_at)
CONSTRAINT jobs.job_actions job_actions_pkey PRIMARY KEY (job_id, id)
CONSTRAINT jobs.job_attempts job_attempts_pkey PRIMARY KEY (job_id, id)
CONSTRAINT jobs.job_queue job_queue_pkey PRIMARY KEY (job_id)
CONSTRAINT jobs.queues queues_backoff_initial_ms_check CHECK ((backoff_initial_ms >= 1))
CONSTRAINT jobs.queues queues_backoff_jitter_check CHECK (((backoff_jitter >= (0)::double precision) AND (backoff_jitter <= (1)::double precision)))
CONSTRAINT jobs.queues queues_check CHECK (((rate_count IS NULL) = (rate_window_ms IS NULL)))
CONSTRAINT jobs.queues queues_max_deferrals_check CHECK ((max_deferrals >= 0))
CONSTRAINT jobs.queues queues_max_retries_check CHECK ((max_retries >= 1))
CONSTRAINT jobs.queues queues_max_running_check CHECK ((max_running >= 1))
CONSTRAINT jobs.queues queues_pkey PRIMARY KEY (queue)
CONSTRAINT jobs.queues queues_queue_check CHECK (((length(queue) >= 1) AND (length(queue) <= 100)))
CONSTRAINT jobs.queues queues_rate_count_check CHECK ((rate_count >= 1))
CONSTRAINT jobs.queues queues_rate_window_ms_check CHECK ((rate_window_ms >= 1))
CONSTRAINT jobs.queues queues_timeout_ms_check CHECK ((timeout_ms >= 1))
CONSTRAINT outbox.destination_state destination_state_check CHECK ((num_nulls(rate, peak, cut_at, window_at, window_taken) = ANY (ARRAY[0, 5])))
CONSTRAINT outbox.destination_state destination_state_check1 CHECK (((rate >= (1)::double precision) AND (rate <= peak)))
CONSTRAINT outbox.destination_state destination_state_check2 CHECK (((hold_until IS NULL) OR (rate IS NOT NULL)))
CONSTRAINT outbox.destination_state destination_state_check3 CHECK ((num_nulls(opened_at, open_reason, probe_interval_ms, next_probe_at) = ANY (ARRAY[0, 4])))
CONSTRAINT outbox.destination_state destination_state_check4 CHECK (((last_probe_id IS NULL) OR (opened_at IS NOT NULL)))
CONSTRAINT outbox.destination_state destination_state_pkey PRIMARY KEY (destination)
CONSTRAINT outbox.idempo_ledger idempo_ledger_pkey PRIMARY KEY (idempotency_key)
CONSTRAINT outbox.idempo_ledger idempo_ledger_status_check CHECK ((status = ANY (ARRAY['accepted'::text, 'succeeded'::text, 'failed'::text])))
CONSTRAINT outbox.idempo_ledger_archive idempo_ledger_archive_pkey PRIMARY KEY (outbox_id)
CONSTRAINT outbox.outbox_audit outbox_audit_pkey PRIMARY KEY (outbox_id, id, at)
CONSTRAINT outbox.outbox_orders outbox_orders_check CHECK (((ordering_key IS NULL) = (ordering_seq IS NULL)))
CONSTRAINT outbox.outbox_orders outbox_orders_check1 CHECK (((resolution IS NULL) OR (status = 'dead'::text)))
CONSTRAINT outbox.outbox_orders outbox_orders_idempotency_key_key UNIQUE (idempotency_key)
CONSTRAINT outbox.outbox_orders outbox_orders_pkey PRIMARY KEY (id)
CONSTRAINT outbox.outbox_orders outbox_orders_resolution_check CHECK ((resolution = ANY (ARRAY['cancelled'::text, 'skipped'::text, 'superseded'::text])))
CONSTRAINT outbox.outbox_orders outbox_orders_retry_count_check CHECK ((retry_count >= 0))
CONSTRAINT outbox.outbox_orders outbox_orders_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'sending'::text, 'sent'::text, 'failed'::text, 'dead'::text])))
CONSTRAINT outbox.outbox_orders outbox_orders_supersedes_id_key UNIQUE (supersedes_id)
CONSTRAINT outbox.outbox_orders_archive outbox_orders_archive_pkey PRIMARY KEY (id)
CONSTRAINT platform.data_keys data_keys_pkey PRIMARY KEY (id)
CONSTRAINT platform.data_keys data_keys_purpose_check CHECK ((purpose = ANY (ARRAY['payload'::text, 'lookup'::text])))
CONSTRAINT platform.data_keys data_keys_slice_purpose_month_turn_key UNIQUE (slice, purpose, month, turn)
CONSTRAINT platform.dlq_positions dlq_positions_pkey PRIMARY KEY (cluster_id, topic_id, partition)
CONSTRAINT platform.idle_workers idle_workers_pkey PRIMARY KEY (channel, worker)
CONSTRAINT platform.leases leases_pkey PRIMARY KEY (name)
CONSTRAINT platform.migrations migrations_pkey PRIMARY KEY (slice, number)
CONSTRAINT platform.notify_events notify_events_pkey PRIMARY KEY (id)
CONSTRAINT platform.notify_groups notify_groups_check CHECK ((((held_count = 0) = (held_first_at IS NULL)) AND ((held_count = 0) = (held_last_at IS NULL))))
CONSTRAINT platform.notify_groups notify_groups_held_count_check CHECK ((held_count >= 0))
CONSTRAINT platform.notify_groups notify_groups_pkey PRIMARY KEY (notifier, slice, kind, subject)
CONSTRAINT platform.replicas replicas_pkey PRIMARY KEY (replica_id)
CONSTRAINT saga.saga_start_keys saga_start_keys_key_check CHECK (((length(key) >= 1) AND (length(key) <= 255)))
CONSTRAINT saga.saga_start_keys saga_start_keys_pkey PRIMARY KEY (workflow_name, key)
CONSTRAINT saga.saga_states chk_saga_states_status CHECK (((status)::text = ANY ((ARRAY['STARTED'::character varying, 'RUNNING'::character varying, 'COMPLETED'::character varying, 'COMPENSATING'::character varying, 'FAILED'::character varying, 'CANCELLED'::character varying])::text[])))
CONSTRAINT saga.saga_states saga_states_abort_requested_check CHECK ((abort_requested = ANY (ARRAY['cancel'::text, 'compensate'::text])))
CONSTRAINT saga.saga_states saga_states_check CHECK (((polls IS NULL) = (failed_polls IS NULL)))
CONSTRAINT saga.saga_states saga_states_check1 CHECK ((needs_attention = (stuck_step IS NOT NULL)))
CONSTRAINT saga.saga_states saga_states_check2 CHECK (((NOT needs_attention) OR ((status)::text = ANY ((ARRAY['RUNNING'::character varying, 'COMPENSATING'::character varying])::text[]))))
CONSTRAINT saga.saga_states saga_states_check3 CHECK (((waiting_for IS NULL) = (waiting_since IS NULL))) NOT VALID
CONSTRAINT saga.saga_states saga_states_compensation_check CHECK ((compensation = ANY (ARRAY['none'::text, 'running'::text, 'done'::text, 'stuck'::text, 'resolved'::text])))
CONSTRAINT saga.saga_states saga_states_definition_hash_fkey FOREIGN KEY (definition_hash) REFERENCES saga.workflow_definitions(hash)
CONSTRAINT saga.saga_states saga_states_pkey PRIMARY KEY (id)
CONSTRAINT saga.saga_states saga_states_stuck_op_check CHECK ((stuck_op = ANY (ARRAY['EXECUTE'::text, 'COMPENSATE'::text])))
CONSTRAINT saga.saga_states_archive saga_states_archive_pkey PRIMARY KEY (id)
CONSTRAINT saga.saga_step_logs chk_saga_step_logs_action CHECK (((action)::text = ANY ((ARRAY['EXECUTE'::character varying, 'COMPENSATE'::character varying])::text[])))
CONSTRAINT saga.saga_step_logs chk_saga_step_logs_open CHECK (((status IS NULL) = (completed_at IS NULL)))
CONSTRAINT saga.saga_step_logs chk_saga_step_logs_status CHECK (((status)::text = ANY ((ARRAY['SUCCESS'::character varying, 'FAILED'::character varying, 'TIMEOUT'::character varying, 'SKIPPED'::character varying])::text[])))
CONSTRAINT saga.saga_step_logs saga_step_logs_answer_check CHECK ((answer = ANY (ARRAY['done'::text, 'refused'::text, 'defect'::text, 'unknown'::text, 'unserved'::text, 'unavailable'::text, 'not_done'::text]))) NOT VALID
CONSTRAINT saga.saga_step_logs saga_step_logs_attempt_check CHECK ((attempt >= 1))
CONSTRAINT saga.saga_step_logs saga_step_logs_pkey PRIMARY KEY (id)
CONSTRAINT saga.saga_step_logs saga_step_logs_saga_id_fkey FOREIGN KEY (saga_id) REFERENCES saga.saga_states(id) ON DELETE CASCADE
CONSTRAINT saga.saga_step_logs uq_saga_step_logs_attempt UNIQUE (saga_id, step_index, action, attempt)
CONSTRAINT saga.saga_step_logs_archive saga_step_logs_archive_pkey PRIMARY KEY (id)
CONSTRAINT saga.service_circuits service_circuits_pkey PRIMARY KEY (service)
CONSTRAINT saga.workflow_definitions workflow_definitions_pkey PRIMARY KEY (hash)
CONSTRAINT saga.workflows workflows_current_hash_fkey FOREIGN KEY (current_hash) REFERENCES saga.workflow_definitions(hash)
CONSTRAINT saga.workflows workflows_pkey PRIMARY KEY (name)
CREATE UNIQUE INDEX api_keys_pkey ON access.api_keys USING btree (id)
CREATE INDEX idx_api_keys_created ON access.api_keys USING btree (created_at DESC, id DESC)
CREATE INDEX idx_api_keys_maker ON access.api_keys USING btree (maker)
CREATE UNIQUE INDEX known_users_pkey ON access.known_users USING btree (id)
CREATE INDEX idx_sessions_expires ON access.sessions USING btree (expires_at)
CREATE INDEX idx_sessions_subject ON access.sessions USING btree (subject)
CREATE UNIQUE INDEX sessions_pkey ON access.sessions USING btree (id_sha256)
CREATE UNIQUE INDEX dropped_months_pkey ON audit.dropped_months USING btree (kept, begins_at)
CREATE UNIQUE INDEX events_pkey ON ONLY audit.events USING btree (seq, kept, at)
CREATE INDEX idx_events_actor ON ONLY audit.events USING btree (actor_id, seq)
CREATE INDEX idx_events_operation ON ONLY audit.events USING btree (operation_id) WHERE (operation_id IS NOT NULL)
CREATE INDEX idx_events_resource ON ONLY audit.events USING btree (resource, seq)
CREATE INDEX idx_seals_last_seq ON audit.seals USING btree (last_seq)
CREATE UNIQUE INDEX seals_hash_key ON audit.seals USING btree (hash)
CREATE UNIQUE INDEX seals_pkey ON audit.seals USING btree (block)
CREATE INDEX idx_inbox_entries_gone ON console.inbox_entries USING btree (gone_at) WHERE (gone_at IS NOT NULL)
CREATE INDEX idx_inbox_entries_seen ON console.inbox_entries USING btree (seen_at, id)
CREATE UNIQUE INDEX inbox_entries_pkey ON console.inbox_entries USING btree (id)
CREATE INDEX idx_inbox_notes_entry ON console.inbox_notes USING btree (entry_id, at, id)
CREATE UNIQUE INDEX inbox_notes_pkey ON console.inbox_notes USING btree (id)
CREATE INDEX idx_views_shared ON console.views USING btree (name, id) WHERE shared
CREATE UNIQUE INDEX views_owner_name_key ON console.views USING btree (owner, name)
CREATE UNIQUE INDEX views_pkey ON console.views USING btree (id)
CREATE UNIQUE INDEX arrivals_pkey ON dlq.arrivals USING btree (topic_id, partition, "offset")
CREATE UNIQUE INDEX bulk_acts_pkey ON dlq.bulk_acts USING btree (id)
CREATE INDEX idx_bulk_acts_person ON dlq.bulk_acts USING btree (person, at)
CREATE UNIQUE INDEX dlq_messages_pkey ON dlq.dlq_messages USING btree (id)
CREATE INDEX idx_dlq_messages_created_at ON dlq.dlq_messages USING btree (created_at, id)
CREATE INDEX idx_dlq_messages_edited ON dlq.dlq_messages USING btree (created_at, id) WHERE (version > 0)
CREATE INDEX idx_dlq_messages_fingerprint ON dlq.dlq_messages USING btree (fingerprint, status, created_at, id) WHERE (fingerprint IS NOT NULL)
CREATE INDEX idx_dlq_messages_next_attempt ON dlq.dlq_messages USING btree (retry_policy, next_attempt_at, id) WHERE (next_attempt_at IS NOT NULL)
CREATE INDEX idx_dlq_messages_original_topic ON dlq.dlq_messages USING btree (original_topic, status, created_at, id)
CREATE INDEX idx_dlq_messages_source_topic ON dlq.dlq_messages USING btree (source_topic, status, created_at, id) INCLUDE (original_topic)
CREATE INDEX idx_dlq_messages_status ON dlq.dlq_messages USING btree (status, created_at, id)
CREATE INDEX idx_dlq_messages_unroutable ON dlq.dlq_messages USING btree (created_at, id) WHERE unroutable
CREATE UNIQUE INDEX uq_dlq_messages_source ON dlq.dlq_messages USING btree (source_topic_id, source_partition, source_offset)
CREATE UNIQUE INDEX dlq_messages_archive_pkey ON dlq.dlq_messages_archive USING btree (id)
CREATE INDEX idx_dlq_messages_archive_created_at ON dlq.dlq_messages_archive USING btree (created_at, id)
CREATE INDEX idx_dlq_messages_archive_edited ON dlq.dlq_messages_archive USING btree (created_at, id) WHERE (version > 0)
CREATE INDEX idx_dlq_messages_archive_fingerprint ON dlq.dlq_messages_archive USING btree (fingerprint, status, created_at, id) WHERE (fingerprint IS NOT NULL)
CREATE INDEX idx_dlq_messages_archive_original_topic ON dlq.dlq_messages_archive USING btree (original_topic, status, created_at, id)
CREATE INDEX idx_dlq_messages_archive_source ON dlq.dlq_messages_archive USING btree (source_topic_id, source_partition, source_offset)
CREATE INDEX idx_dlq_messages_archive_source_topic ON dlq.dlq_messages_archive USING btree (source_topic, status, created_at, id) INCLUDE (original_topic)
CREATE INDEX idx_dlq_messages_archive_status ON dlq.dlq_messages_archive USING btree (status, created_at, id)
CREATE INDEX idx_dlq_messages_archive_unroutable ON dlq.dlq_messages_archive USING btree (created_at, id) WHERE unroutable
CREATE UNIQUE INDEX fingerprints_pkey ON dlq.fingerprints USING btree (fingerprint)
CREATE INDEX idx_dlq_fingerprints_last_at ON dlq.fingerprints USING btree (last_at, fingerprint)
CREATE INDEX idx_dlq_fingerprints_prefix ON dlq.fingerprints USING btree (fingerprint text_pattern_ops)
CREATE INDEX idx_dlq_group_changes_fingerprint ON dlq.group_changes USING btree (fingerprint)
CREATE UNIQUE INDEX group_counts_pkey ON dlq.group_counts USING btree (fingerprint, original_topic, consumer_group, status, hour)
CREATE INDEX idx_dlq_group_counts_hour ON dlq.group_counts USING btree (hour) WHERE (hour > '1970-01-01 00:00:00+00'::timestamp with time zone)
CREATE INDEX idx_dlq_group_counts_topic ON dlq.group_counts USING btree (original_topic, fingerprint)
CREATE UNIQUE INDEX index_queue_pkey ON dlq.index_queue USING btree (is_backfill, queued_at, id)
CREATE INDEX idx_dlq_facets_consumer_group ON dlq.message_facets USING btree (consumer_group, created_at, message_id) WHERE (consumer_group IS NOT NULL)
CREATE INDEX idx_dlq_facets_error_class ON dlq.message_facets USING btree (error_class, created_at, message_id) WHERE (error_class IS NOT NULL)
CREATE INDEX idx_dlq_facets_key_hash ON dlq.message_facets USING btree (key_hash, created_at, message_id) WHERE (key_hash IS NOT NULL)
CREATE INDEX idx_dlq_facets_search ON dlq.message_facets USING gin (search) WITH (gin_pending_list_limit='1024')
CREATE INDEX idx_dlq_facets_trace_id ON dlq.message_facets USING btree (trace_id, created_at, message_id) WHERE (trace_id IS NOT NULL)
CREATE UNIQUE INDEX message_facets_pkey ON dlq.message_facets USING btree (message_id)
CREATE INDEX idx_dlq_facets_archive_trace_id ON dlq.message_facets_archive USING btree (trace_id, created_at, message_id) WHERE (trace_id IS NOT NULL)
CREATE INDEX message_facets_archive_consumer_group_created_at_message_id_idx ON dlq.message_facets_archive USING btree (consumer_group, created_at, message_id) WHERE (consumer_group IS NOT NULL)
CREATE INDEX message_facets_archive_error_class_created_at_message_id_idx ON dlq.message_facets_archive USING btree (error_class, created_at, message_id) WHERE (error_class IS NOT NULL)
CREATE INDEX message_facets_archive_key_hash_created_at_message_id_idx ON dlq.message_facets_archive USING btree (key_hash, created_at, message_id) WHERE (key_hash IS NOT NULL)
CREATE UNIQUE INDEX message_facets_archive_pkey ON dlq.message_facets_archive USING btree (message_id)
CREATE INDEX message_facets_archive_search_idx ON dlq.message_facets_archive USING gin (search) WITH (gin_pending_list_limit='1024')
CREATE UNIQUE INDEX message_history_pkey ON dlq.message_history USING btree (message_id, id)
CREATE UNIQUE INDEX message_versions_pkey ON dlq.message_versions USING btree (message_id, version)
CREATE INDEX idx_redrive_items_acked ON dlq.redrive_items USING btree (redrive_id, settled_at) WHERE ((stage IS NOT NULL) AND (outcome = ANY (ARRAY['published'::text, 'came_back'::text])))
CREATE INDEX idx_redrive_items_blocking ON dlq.redrive_items USING btree (redrive_id, key_hash) WHERE ((key_hash IS NOT NULL) AND (outcome = ANY (ARRAY['failed'::text, 'unknown'::text, 'skipped'::text, 'came_back'::text])))
CREATE INDEX idx_redrive_items_came_back ON dlq.redrive_items USING btree (redrive_id, came_back_at) WHERE (came_back_at IS NOT NULL)
CREATE INDEX idx_redrive_items_in_flight ON dlq.redrive_items USING btree (redrive_id, claim_epoch) WHERE ((stage IS NOT NULL) AND (outcome IS NULL) AND (claim_epoch IS NOT NULL))
CREATE INDEX idx_redrive_items_place ON dlq.redrive_items USING btree (target, partition, "offset") WHERE ((stage IS NOT NULL) AND ("offset" IS NOT NULL))
CREATE INDEX idx_redrive_items_sha256 ON dlq.redrive_items USING btree (sha256) WHERE (sha256 IS NOT NULL)
CREATE INDEX idx_redrive_items_stage ON dlq.redrive_items USING btree (redrive_id, stage, "position") WHERE (stage IS NOT NULL)
CREATE UNIQUE INDEX redrive_items_pkey ON dlq.redrive_items USING btree (redrive_id, "position")
CREATE UNIQUE INDEX uq_redrive_items_message ON dlq.redrive_items USING btree (message_id, redrive_id)
CREATE INDEX idx_redrives_by_people ON dlq.redrives USING btree (created_at, id) WHERE (policy IS NULL)
CREATE INDEX idx_redrives_created_at ON dlq.redrives USING btree (created_at, id)
CREATE INDEX idx_redrives_open ON dlq.redrives USING btree (created_at, id) WHERE ((state = ANY (ARRAY['planning'::text, 'planned'::text, 'running'::text, 'paused'::text, 'stopped'::text])) OR ((state = 'cancelled'::text) AND (receipt IS NULL)))
CREATE INDEX idx_redrives_policy ON dlq.redrives USING btree (policy, created_at, id) WHERE (policy IS NOT NULL)
CREATE INDEX idx_redrives_watched ON dlq.redrives USING btree (id) WHERE ((watched_targets IS NOT NULL) AND (state = ANY (ARRAY['running'::text, 'paused'::text, 'stopped'::text])))
CREATE UNIQUE INDEX redrives_pkey ON dlq.redrives USING btree (id)
CREATE UNIQUE INDEX retry_policies_pkey ON dlq.retry_policies USING btree (name)
CREATE UNIQUE INDEX source_partitions_pkey ON dlq.source_partitions USING btree (id)
CREATE UNIQUE INDEX uq_source_partitions ON dlq.source_partitions USING btree (cluster_id, topic_id, partition)
CREATE UNIQUE INDEX value_parts_pkey ON dlq.value_parts USING btree (id, n)
CREATE UNIQUE INDEX cron_ticks_pkey ON jobs.cron_ticks USING btree (name, tick_at)
CREATE UNIQUE INDEX job_actions_pkey ON jobs.job_actions USING btree (job_id, id)
CREATE UNIQUE INDEX job_attempts_pkey ON jobs.job_attempts USING btree (job_id, id)
CREATE INDEX idx_job_queue_alone ON jobs.job_queue USING btree (queue, sort_at, job_id) WHERE (lease_lost AND ((status)::text = ANY (ARRAY['pending'::text, 'failed'::text])))
CREATE INDEX idx_job_queue_claim ON jobs.job_queue USING btree (queue, sort_at, job_id) WHERE ((status)::text = ANY (ARRAY['pending'::text, 'failed'::text]))
CREATE INDEX idx_job_queue_dead ON jobs.job_queue USING btree (queue, completed_at, job_id) WHERE ((status)::text = 'dead_letter'::text)
CREATE INDEX idx_job_queue_dead_fingerprint ON jobs.job_queue USING btree (fingerprint, job_id) WHERE (((status)::text = 'dead_letter'::text) AND (fingerprint IS NOT NULL))
CREATE INDEX idx_job_queue_dead_id ON jobs.job_queue USING btree (job_id) WHERE ((status)::text = 'dead_letter'::text)
CREATE UNIQUE INDEX idx_job_queue_dedupe ON jobs.job_queue USING btree (queue, dedupe_key) WHERE ((dedupe_key IS NOT NULL) AND ((status)::text = ANY (ARRAY['pending'::text, 'running'::text, 'failed'::text])))
CREATE INDEX idx_job_queue_failed_id ON jobs.job_queue USING btree (job_id) WHERE ((status)::text = 'failed'::text)
CREATE INDEX idx_job_queue_running ON jobs.job_queue USING btree (queue, lease_epoch) WHERE ((status)::text = 'running'::text)
CREATE INDEX idx_job_queue_trace_id ON jobs.job_queue USING btree (substr(trace, 4, 32)) WHERE (trace IS NOT NULL)
CREATE INDEX idx_job_queue_unresolved ON jobs.job_queue USING btree (job_id) WHERE (((status)::text = 'dead_letter'::text) AND (resolution IS NULL))
CREATE INDEX idx_job_queue_unresolved_of_queue ON jobs.job_queue USING btree (queue, job_id) WHERE (((status)::text = 'dead_letter'::text) AND (resolution IS NULL))
CREATE UNIQUE INDEX job_queue_pkey ON jobs.job_queue USING btree (job_id)
CREATE UNIQUE INDEX queues_pkey ON jobs.queues USING btree (queue)
CREATE UNIQUE INDEX destination_state_pkey ON outbox.destination_state USING btree (destination)
CREATE UNIQUE INDEX idempo_ledger_pkey ON outbox.idempo_ledger USING btree (idempotency_key)
CREATE INDEX idx_idempo_ledger_expires_at ON outbox.idempo_ledger USING btree (expires_at) WHERE (expires_at < 'infinity'::timestamp with time zone)
CREATE UNIQUE INDEX idempo_ledger_archive_pkey ON outbox.idempo_ledger_archive USING btree (outbox_id)
CREATE INDEX idx_idempo_ledger_archive_key ON outbox.idempo_ledger_archive USING btree (idempotency_key)
CREATE UNIQUE INDEX outbox_audit_pkey ON ONLY outbox.outbox_audit USING btree (outbox_id, id, at)
CREATE INDEX idx_outbox_orders_claim ON outbox.outbox_orders USING btree (destination, next_attempt_at, id) WHERE ((ordering_key IS NULL) AND (status = ANY (ARRAY['queued'::text, 'failed'::text])))
CREATE INDEX idx_outbox_orders_claim_keyed ON outbox.outbox_orders USING btree (destination, next_attempt_at, id) WHERE ((ordering_key IS NOT NULL) AND (NOT held) AND (status = ANY (ARRAY['queued'::text, 'failed'::text])))
CREATE INDEX idx_outbox_orders_created_at ON outbox.outbox_orders USING btree (created_at, id)
CREATE INDEX idx_outbox_orders_created_by ON outbox.outbox_orders USING btree (created_by, id) WHERE (created_by IS NOT NULL)
CREATE INDEX idx_outbox_orders_destination ON outbox.outbox_orders USING btree (destination, id)
CREATE INDEX idx_outbox_orders_fingerprint ON outbox.outbox_orders USING btree (fingerprint, id) WHERE (fingerprint IS NOT NULL)
CREATE INDEX idx_outbox_orders_internal_sent ON outbox.outbox_orders USING btree (updated_at) WHERE ((status = 'sent'::text) AND starts_with(destination, '_'::text))
CREATE INDEX idx_outbox_orders_key_order ON outbox.outbox_orders USING btree (destination, ordering_key, ordering_seq) WHERE ((ordering_key IS NOT NULL) AND ((status = ANY (ARRAY['queued'::text, 'sending'::text, 'failed'::text])) OR ((status = 'dead'::text) AND (resolution IS NULL))))
CREATE INDEX idx_outbox_orders_lease_lost ON outbox.outbox_orders USING btree (destination, next_attempt_at, id) WHERE (lease_lost AND (status = 'failed'::text))
CREATE INDEX idx_outbox_orders_status ON outbox.outbox_orders USING btree (status, id) WHERE (status <> 'sent'::text)
CREATE INDEX idx_outbox_orders_status_next_attempt ON outbox.outbox_orders USING btree (status, next_attempt_at) WHERE (status <> 'sent'::text)
CREATE INDEX idx_outbox_orders_trace_id ON outbox.outbox_orders USING btree ("left"(trace_id, 100)) WHERE (trace_id IS NOT NULL)
CREATE INDEX idx_outbox_orders_unresolved ON outbox.outbox_orders USING btree (destination, id) WHERE ((status = 'dead'::text) AND (resolution IS NULL))
CREATE UNIQUE INDEX outbox_orders_idempotency_key_key ON outbox.outbox_orders USING btree (idempotency_key)
CREATE UNIQUE INDEX outbox_orders_pkey ON outbox.outbox_orders USING btree (id)
CREATE UNIQUE INDEX outbox_orders_supersedes_id_key ON outbox.outbox_orders USING btree (supersedes_id)
CREATE INDEX idx_outbox_orders_archive_archived_at ON outbox.outbox_orders_archive USING btree (archived_at)
CREATE INDEX idx_outbox_orders_archive_key ON outbox.outbox_orders_archive USING btree (idempotency_key)
CREATE INDEX idx_outbox_orders_archive_supersedes_id ON outbox.outbox_orders_archive USING btree (supersedes_id) WHERE (supersedes_id IS NOT NULL)
CREATE UNIQUE INDEX outbox_orders_archive_pkey ON outbox.outbox_orders_archive USING btree (id)
CREATE UNIQUE INDEX data_keys_pkey ON platform.data_keys USING btree (id)
CREATE UNIQUE INDEX data_keys_slice_purpose_month_turn_key ON platform.data_keys USING btree (slice, purpose, month, turn)
CREATE UNIQUE INDEX dlq_positions_pkey ON platform.dlq_positions USING btree (cluster_id, topic_id, partition)
CREATE UNIQUE INDEX idle_workers_pkey ON platform.idle_workers USING btree (channel, worker)
CREATE UNIQUE INDEX leases_pkey ON platform.leases USING btree (name)
CREATE UNIQUE INDEX migrations_pkey ON platform.migrations USING btree (slice, number)
CREATE INDEX idx_notify_events_at ON platform.notify_events USING btree (at)
CREATE UNIQUE INDEX notify_events_pkey ON platform.notify_events USING btree (id)
CREATE INDEX idx_notify_groups_told_at ON platform.notify_groups USING btree (notifier, told_at)
CREATE UNIQUE INDEX notify_groups_pkey ON platform.notify_groups USING btree (notifier, slice, kind, subject)
CREATE UNIQUE INDEX replicas_pkey ON platform.replicas USING btree (replica_id)
CREATE INDEX idx_saga_start_keys_expires_at ON saga.saga_start_keys USING btree (expires_at)
CREATE UNIQUE INDEX saga_start_keys_pkey ON saga.saga_start_keys USING btree (workflow_name, key)
CREATE INDEX idx_saga_states_correlation_id ON saga.saga_states USING btree (correlation_id) WHERE (correlation_id IS NOT NULL)
CREATE INDEX idx_saga_states_created_at ON saga.saga_states USING btree (created_at)
CREATE INDEX idx_saga_states_created_by ON saga.saga_states USING btree (created_by, created_at DESC, id DESC) WHERE (created_by IS NOT NULL)
CREATE INDEX idx_saga_states_fingerprint ON saga.saga_states USING btree (fingerprint, created_at DESC, id DESC) WHERE (fingerprint IS NOT NULL)
CREATE INDEX idx_saga_states_leased ON saga.saga_states USING btree (id) WHERE (lease_owner IS NOT NULL)
CREATE INDEX idx_saga_states_needs_attention ON saga.saga_states USING btree (created_at DESC, id) WHERE needs_attention
CREATE INDEX idx_saga_states_status ON saga.saga_states USING btree (phase)
CREATE INDEX idx_saga_states_stuck ON saga.saga_states USING btree (id) WHERE needs_attention
CREATE INDEX idx_saga_states_trace_id ON saga.saga_states USING btree (substr(trace, 4, 32)) WHERE (trace IS NOT NULL)
CREATE INDEX idx_saga_states_unfinished ON saga.saga_states USING btree (created_at) WHERE ((status)::text = ANY ((ARRAY['STARTED'::character varying, 'RUNNING'::character varying, 'COMPENSATING'::character varying])::text[]))
CREATE INDEX idx_saga_states_unknown ON saga.saga_states USING btree (id) WHERE ((definition_hash IS NULL) AND (NOT needs_attention) AND (phase = ANY (ARRAY['NEW'::text, 'FORWARD'::text, 'COMPENSATING'::text])))
CREATE INDEX idx_saga_states_waiting ON saga.saga_states USING btree (waiting_for, waiting_since, id) WHERE (waiting_for IS NOT NULL)
CREATE INDEX idx_saga_states_wake ON saga.saga_states USING btree (wake_at, id) WHERE (wake_at IS NOT NULL)
CREATE INDEX idx_saga_states_wake_alone ON saga.saga_states USING btree (wake_at, id) WHERE (runs_alone AND (wake_at IS NOT NULL))
CREATE INDEX idx_saga_states_workflow_name ON saga.saga_states USING btree (workflow_name)
CREATE UNIQUE INDEX saga_states_pkey ON saga.saga_states USING btree (id)
CREATE INDEX idx_saga_states_archive_created_at ON saga.saga_states_archive USING btree (created_at DESC, id)
CREATE UNIQUE INDEX saga_states_archive_pkey ON saga.saga_states_archive USING btree (id)
CREATE INDEX idx_saga_step_logs_started_at ON saga.saga_step_logs USING brin (started_at) WITH (autosummarize='on')
CREATE UNIQUE INDEX saga_step_logs_pkey ON saga.saga_step_logs USING btree (id)
CREATE UNIQUE INDEX uq_saga_step_logs_attempt ON saga.saga_step_logs USING btree (saga_id, step_index, action, attempt)
CREATE INDEX idx_saga_step_logs_archive_saga_id ON saga.saga_step_logs_archive USING btree (saga_id)
CREATE UNIQUE INDEX saga_step_logs_archive_pkey ON saga.saga_step_logs_archive USING btree (id)
CREATE UNIQUE INDEX service_circuits_pkey ON saga.service_circuits USING btree (service)
CREATE UNIQUE INDEX workflow_definitions_pkey ON saga.workflow_definitions USING btree (hash)
CREATE UNIQUE INDEX workflows_pkey ON saga.workflows USING btree (name)
SEQUENCE audit.events_seq CACHE 1
SEQUENCE outbox.ordering_seqs CACHE 1
SEQUENCE platform.lease_epochs CACHE 1
CREATE TRIGGER dropped_months_are_not_changed BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.dropped_months FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()
CREATE TRIGGER events_are_not_changed BEFORE DELETE OR UPDATE ON audit.events FOR EACH ROW EXECUTE FUNCTION audit.refuse_change()
CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON audit.events FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()
CREATE TRIGGER events_are_stamped BEFORE INSERT ON audit.events FOR EACH ROW EXECUTE FUNCTION audit.stamp_event()
CREATE TRIGGER job_queue_bound_payload BEFORE INSERT OR UPDATE OF payload ON jobs.job_queue FOR EACH ROW WHEN ((((pg_column_size(new.payload) > 1000) OR (pg_column_compression(new.payload) IS NOT NULL)) AND (platform.json_bytes(new.payload) > 16777216))) EXECUTE FUNCTION platform.refuse_large_json('payload')
CREATE TRIGGER job_queue_requeue BEFORE UPDATE ON jobs.job_queue FOR EACH ROW WHEN ((((new.status)::text = 'pending'::text) AND (((old.status)::text = ANY (ARRAY['failed'::text, 'completed'::text, 'dead_letter'::text])) OR (((old.status)::text = 'running'::text) AND (new.lease_owner IS NOT NULL))))) EXECUTE FUNCTION jobs.complete_requeue()
CREATE TRIGGER outbox_audit_is_append_only BEFORE DELETE OR UPDATE ON outbox.outbox_audit FOR EACH ROW EXECUTE FUNCTION outbox.refuse_change_of_audit()
CREATE TRIGGER outbox_audit_is_not_truncated BEFORE TRUNCATE ON outbox.outbox_audit FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change_of_audit()
CREATE TRIGGER outbox_orders_bound_request_json BEFORE INSERT OR UPDATE OF request_json ON outbox.outbox_orders FOR EACH ROW WHEN ((((pg_column_size(new.request_json) > 1000) OR (pg_column_compression(new.request_json) IS NOT NULL)) AND (platform.json_bytes(new.request_json) > 16777216))) EXECUTE FUNCTION platform.refuse_large_json('request_json')
CREATE TRIGGER saga_states_bound_payload BEFORE INSERT OR UPDATE OF payload ON saga.saga_states FOR EACH ROW WHEN ((((pg_column_size(new.payload) > 1000) OR (pg_column_compression(new.payload) IS NOT NULL)) AND (platform.json_bytes(new.payload) > 16777216))) EXECUTE FUNCTION platform.refuse_large_json('payload')
CREATE TRIGGER saga_states_refuse_delete BEFORE DELETE ON saga.saga_states FOR EACH ROW EXECUTE FUNCTION saga.refuse_delete()
CREATE TRIGGER saga_states_refuse_truncate BEFORE TRUNCATE ON saga.saga_states FOR EACH STATEMENT EXECUTE FUNCTION saga.refuse_truncate()
CREATE TRIGGER saga_step_logs_complete_row BEFORE INSERT ON saga.saga_step_logs FOR EACH ROW WHEN ((new.attempt IS NULL)) EXECUTE FUNCTION saga.complete_log_row()
CREATE TRIGGER saga_step_logs_refuse_truncate BEFORE TRUNCATE ON saga.saga_step_logs FOR EACH STATEMENT EXECUTE FUNCTION saga.refuse_truncate()
CREATE TRIGGER seals_are_chained BEFORE INSERT ON audit.seals FOR EACH ROW EXECUTE FUNCTION audit.chain_seal()
CREATE TRIGGER seals_are_not_changed BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.seals FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()
CREATE TRIGGER trg_dlq_messages_archive_delete_facets AFTER DELETE ON dlq.dlq_messages_archive REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.delete_archived_facets()
CREATE TRIGGER trg_dlq_messages_archive_facets AFTER INSERT ON dlq.dlq_messages_archive REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.archive_facets()
CREATE TRIGGER trg_dlq_messages_archive_forget_versions AFTER DELETE ON dlq.dlq_messages_archive REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.forget_versions()
CREATE TRIGGER trg_dlq_messages_archive_truncate_facets AFTER TRUNCATE ON dlq.dlq_messages_archive FOR EACH STATEMENT EXECUTE FUNCTION dlq.truncate_facets()
CREATE TRIGGER trg_dlq_messages_count_deleted AFTER DELETE ON dlq.dlq_messages REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_deleted()
CREATE TRIGGER trg_dlq_messages_count_inserted AFTER INSERT ON dlq.dlq_messages REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_inserted()
CREATE TRIGGER trg_dlq_messages_count_truncated AFTER TRUNCATE ON dlq.dlq_messages FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_truncated()
CREATE TRIGGER trg_dlq_messages_count_updated AFTER UPDATE ON dlq.dlq_messages REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_updated()
CREATE TRIGGER trg_dlq_messages_delete_facets AFTER DELETE ON dlq.dlq_messages REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.delete_facets()
CREATE TRIGGER trg_dlq_messages_forget_versions AFTER DELETE ON dlq.dlq_messages REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.forget_versions()
CREATE TRIGGER trg_dlq_messages_queue_changed AFTER UPDATE OF created_at, error_message, error_class, consumer_group, message_key, raw_value, payload ON dlq.dlq_messages FOR EACH ROW EXECUTE FUNCTION dlq.queue_changed()
CREATE TRIGGER trg_dlq_messages_queue_inserted AFTER INSERT ON dlq.dlq_messages REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dlq.queue_inserted()
CREATE TRIGGER trg_dlq_messages_truncate_facets AFTER TRUNCATE ON dlq.dlq_messages FOR EACH STATEMENT EXECUTE FUNCTION dlq.truncate_facets()
CREATE TRIGGER trg_dlq_messages_updated_at BEFORE UPDATE ON dlq.dlq_messages FOR EACH ROW WHEN ((current_setting('dlq.deriving_fingerprints'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION dlq.update_updated_at()
CREATE TRIGGER trigger_saga_step_logs_update_updated_at BEFORE UPDATE ON saga.saga_step_logs FOR EACH ROW WHEN ((new.updated_at = old.updated_at)) EXECUTE FUNCTION saga.update_updated_at()
CREATE TRIGGER update_saga_states_updated_at BEFORE UPDATE ON saga.saga_states FOR EACH ROW WHEN ((new.updated_at = old.updated_at)) EXECUTE FUNCTION saga.update_updated_at()
CREATE OR REPLACE FUNCTION outbox.add_order(request json, idempotency_key text, destination text, ordering_key text DEFAULT NULL::text, trace_id text DEFAULT NULL::text, OUT id bigint, OUT outcome text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    -- Compared by bytes, whatever collation the caller's columns have.
    v_key          TEXT COLLATE "C" := idempotency_key;
    v_destination  TEXT COLLATE "C" := destination;
    v_ordering_key TEXT COLLATE "C" := ordering_key;
    v_trace_id     TEXT COLLATE "C" := trace_id;
    v_digest       TEXT COLLATE "C";
    v_request      JSONB;
BEGIN
    outcome := 'refused';
    IF v_key IS NULL OR v_key !~ '^[!-~]{8,64}$' THEN RETURN; END IF;
    IF v_destination IS NULL OR v_destination !~ '^[a-z][a-z0-9_.-]{0,99}$' THEN RETURN; END IF;
    IF v_ordering_key = '' OR length(v_ordering_key) > 255 THEN RETURN; END IF;
    -- A batch of orders is in memory at once.
    IF octet_length(request::text) > 1048576 THEN RETURN; END IF;
    IF length(v_trace_id) > 255 THEN RETURN; END IF;
    v_digest := outbox.request_digest(v_destination, v_ordering_key, request);
    IF v_digest IS NULL THEN RETURN; END IF;
    -- Stored is the canonical form: numeric would write 0e-16383 with all its zeros.
    v_request := outbox.canonical_json(request);
    -- Short as it is, it may be too long with its numbers written out; the table would refuse it with an error.
    IF platform.json_bytes(v_request) > 16777216 THEN RETURN; END IF;
    -- The request's own, where it has one that is fit to be one.
    IF v_trace_id IS NULL AND jsonb_typeof(v_request -> 'trace_id') = 'string'
       AND length(v_request ->> 'trace_id') BETWEEN 1 AND 255 THEN
        v_trace_id := v_request ->> 'trace_id';
    END IF;
    SELECT added.id, added.outcome
    INTO add_order.id, add_order.outcome
    FROM outbox.insert_order(
        p_idempotency_key => v_key, p_destination => v_destination, p_request => v_request, p_digest => v_digest,
        p_ordering_key => v_ordering_key, p_trace_id => v_trace_id, p_traceparent => NULL,
        p_actor => session_user::text) AS added;
END $function$

CREATE OR REPLACE FUNCTION outbox.adopt_default_audit()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
DECLARE
    v_ahead   TIMESTAMPTZ := date_trunc('month', now()) + interval '3 months';
    v_first   TIMESTAMPTZ;
    v_last    TIMESTAMPTZ;
    v_latest  TIMESTAMPTZ;
    v_next    TIMESTAMPTZ;
    v_begin   TIMESTAMPTZ;
    v_end     TIMESTAMPTZ;
    v_name    TEXT;
    v_adopted INT := 0;
BEGIN
    LOCK TABLE outbox.outbox_audit IN SHARE UPDATE EXCLUSIVE MODE;
    -- Nearly always there is nothing to do, and then nobody has to wait.
    IF NOT EXISTS (SELECT 1 FROM outbox.outbox_audit_default WHERE at < v_ahead) THEN
        RETURN 0;
    END IF;
    LOCK TABLE outbox.outbox_audit IN ACCESS EXCLUSIVE MODE;
    LOOP
        SELECT min(at), max(at) FILTER (WHERE at < v_ahead), max(at) INTO v_first, v_last, v_latest
        FROM outbox.outbox_audit_default;
        EXIT WHEN v_last IS NULL;
        SELECT min(p.begins_at) INTO v_next
        FROM outbox.audit_partitions() p WHERE p.begins_at > v_first AND p.begins_at <= v_last;
        IF v_next IS NOT NULL THEN
            SELECT max(at) INTO v_last FROM outbox.outbox_audit_default WHERE at < v_next;
        END IF;
        v_begin := date_trunc('month', v_first);
        v_end := date_trunc('month', v_last) + interval '1 month';
        v_name := to_char(v_begin, '"outbox_audit_"YYYY_MM')
            || CASE WHEN v_end > v_begin + interval '1 month' THEN to_char(v_last, '"_to_"YYYY_MM') ELSE '' END;

        ALTER TABLE outbox.outbox_audit DETACH PARTITION outbox.outbox_audit_default;
        EXECUTE format('ALTER TABLE outbox.outbox_audit_default RENAME TO %I', v_name);
        EXECUTE format('ALTER TABLE outbox.%I RENAME CONSTRAINT outbox_audit_default_pkey TO %I',
                       v_name, v_name || '_pkey');
        CREATE TABLE outbox.outbox_audit_default PARTITION OF outbox.outbox_audit DEFAULT;
        CREATE TRIGGER outbox_audit_is_not_truncated BEFORE TRUNCATE ON outbox.outbox_audit_default
            FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change_of_audit();
        IF v_latest >= v_end THEN
            EXECUTE format('WITH apart AS (DELETE FROM outbox.%I WHERE at >= %L RETURNING *) '
                           'INSERT INTO outbox.outbox_audit_default OVERRIDING SYSTEM VALUE SELECT * FROM apart',
                           v_name, v_end);
        END IF;
        EXECUTE format('ALTER TABLE outbox.outbox_audit ATTACH PARTITION outbox.%I FOR VALUES FROM (%L) TO (%L)',
                       v_name, v_begin, v_end);
        v_adopted := v_adopted + 1;
    END LOOP;
    RETURN v_adopted;
END $function$

CREATE OR REPLACE FUNCTION dlq.archive_facets()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    WITH moved AS (
        DELETE FROM dlq.message_facets f USING new_rows n WHERE f.message_id = n.id
        RETURNING f.message_id, f.created_at, f.error_class, f.key_hash, f.consumer_group, f.trace_id, f.search
    ), archived AS (
        INSERT INTO dlq.message_facets_archive (message_id, created_at, error_class, key_hash, consumer_group, trace_id, search)
        SELECT message_id, created_at, error_class, key_hash, consumer_group, trace_id, search FROM moved
        ON CONFLICT (message_id) DO NOTHING
    )
    INSERT INTO dlq.index_queue (message_ids)
    SELECT array_agg(id) FROM (
        SELECT n.id, (row_number() OVER () - 1) / 100 AS part FROM new_rows n
        WHERE NOT EXISTS (SELECT FROM moved WHERE moved.message_id = n.id)
    ) AS numbered
    GROUP BY part;
    RETURN NULL;
END;
$function$

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
                      m.lease_owner, m.lease_until, m.lease_epoch, m.lease_lost, m.source_compression,
                      m.routed, m.next_attempt_at, m.retry_policy, m.version, m.data_key, m.key_hmac,
                      m.record_hmac, m.removed_parts
        ),
        archived AS (
            INSERT INTO dlq.dlq_messages_archive
                (id, original_topic, error_message, retry_count, max_retries, payload, status,
                 created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                 source_partition, source_offset, source_timestamp, message_key, raw_value,
                 headers, dialect, error_class, error_stack, consumer_group, original_partition,
                 original_offset, original_timestamp, fingerprint, unroutable, parent_id,
                 resolution, attempt_no, published_sha256, lease_owner, lease_until,
                 lease_epoch, lease_lost, source_compression, routed, next_attempt_at, retry_policy, version,
                 data_key, key_hmac, record_hmac, removed_parts)
            SELECT id, original_topic, error_message, retry_count, max_retries, payload, status,
                   created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                   source_partition, source_offset, source_timestamp, message_key, raw_value,
                   headers, dialect, error_class, error_stack, consumer_group,
                   original_partition, original_offset, original_timestamp, fingerprint,
                   unroutable, parent_id, resolution, attempt_no, published_sha256, lease_owner,
                   lease_until, lease_epoch, lease_lost, source_compression, routed,
                   next_attempt_at, retry_policy, version, data_key, key_hmac, record_hmac,
                   removed_parts
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

CREATE OR REPLACE FUNCTION saga.ask_about_unknown()
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
DECLARE
    v_saga   RECORD;
    v_next   INT;
    v_step   INT;
    v_op     TEXT;
    v_reason TEXT;
    v_asked  BIGINT := 0;
BEGIN
    FOR v_saga IN
        SELECT t.id, t.workflow_name, t.status, t.error_message
        FROM saga.saga_states t
        WHERE t.definition_hash IS NULL AND NOT t.needs_attention AND t.phase IN ('NEW', 'FORWARD', 'COMPENSATING')
        ORDER BY t.id
        FOR UPDATE
    LOOP
        v_op := CASE v_saga.status WHEN 'COMPENSATING' THEN 'COMPENSATE' ELSE 'EXECUTE' END;
        v_reason := 'started without a definition: register the workflow ' || v_saga.workflow_name
            || ' as it was then, check what was done, and retry, resolve or skip this step';
        SELECT min(s.step) INTO v_next
        FROM generate_series(0, (SELECT count(*) FROM saga.saga_step_logs l WHERE l.saga_id = v_saga.id)) AS s (step)
        WHERE NOT EXISTS (
            SELECT 1 FROM saga.saga_step_logs l
            WHERE l.saga_id = v_saga.id AND l.step_index = s.step AND l.action = 'EXECUTE'
              AND l.status IN ('SUCCESS', 'SKIPPED'));
        v_step := v_next;
        IF v_op = 'COMPENSATE' THEN
            -- Only steps that the log has by name; the workflow may have no others. The last one that is not undone,
            -- or the last one.
            SELECT COALESCE(max(l.step_index) FILTER (
                WHERE l.action = 'EXECUTE' AND l.answer IN ('done', 'unknown') AND NOT EXISTS (
                    SELECT 1 FROM saga.saga_step_logs u
                    WHERE u.saga_id = l.saga_id AND u.step_index = l.step_index AND u.action = 'COMPENSATE'
                      AND u.status IN ('SUCCESS', 'SKIPPED'))), max(l.step_index), 0)
            INTO v_step
            FROM saga.saga_step_logs l WHERE l.saga_id = v_saga.id AND l.step_name <> '';
        END IF;
        -- The predecessor logged an attempt only after it ended, so this step may have been called when it stopped or
        -- started to compensate. If the workflow turns out to have no such step, the row is dropped.
        IF NOT EXISTS (
            SELECT 1 FROM saga.saga_step_logs l
            WHERE l.saga_id = v_saga.id AND l.step_index = v_next AND l.action = 'EXECUTE' AND l.answer = 'unknown')
        THEN
            PERFORM saga.log_unknown(v_saga.id, v_next, 'EXECUTE', 'unknown', CASE v_op
                WHEN 'EXECUTE' THEN 'worker lost'
                ELSE concat_ws(': ', 'may have been called before compensation started', v_saga.error_message)
            END);
        END IF;
        PERFORM saga.log_unknown(v_saga.id, v_step, v_op, 'unserved', v_reason);

        UPDATE saga.saga_states
        SET status = CASE v_op WHEN 'EXECUTE' THEN 'RUNNING' ELSE 'COMPENSATING' END,
            current_step = v_next,
            compensation = CASE v_op WHEN 'EXECUTE' THEN 'none' ELSE 'stuck' END,
            abort_requested = CASE v_op WHEN 'COMPENSATE' THEN 'compensate' END,
            abort_actor = CASE v_op WHEN 'COMPENSATE' THEN 'predecessor' END,
            abort_reason = CASE v_op WHEN 'COMPENSATE' THEN left(COALESCE(v_saga.error_message, ''), 1000) END,
            abort_at = CASE v_op WHEN 'COMPENSATE' THEN clock_timestamp() END,
            step_outputs = COALESCE((
                SELECT jsonb_object_agg(l.step_name, l.response_payload)
                FROM saga.saga_step_logs l
                WHERE l.saga_id = v_saga.id AND l.action = 'EXECUTE' AND l.status = 'SUCCESS'), '{}'),
            wake_at = NULL, needs_attention = true, stuck_step = v_step, stuck_op = v_op, stuck_reason = v_reason
        WHERE id = v_saga.id;
        INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
        VALUES ('saga', CASE v_op WHEN 'EXECUTE' THEN 'stuck' ELSE 'compensation_stuck' END,
                v_saga.workflow_name, v_saga.id::text, left(v_reason, 500));
        v_asked := v_asked + 1;
    END LOOP;
    RETURN v_asked;
END $function$

CREATE OR REPLACE FUNCTION outbox.audit_partitions(OUT name text, OUT begins_at timestamp with time zone, OUT ends_at timestamp with time zone)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
    SELECT part.relname, bounds[1]::timestamptz, bounds[2]::timestamptz
    FROM pg_inherits i
    JOIN pg_class part ON part.oid = i.inhrelid
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(part.relpartbound, part.oid), '^FOR VALUES FROM \(''(.+)''\) TO \(''(.+)''\)$') AS bounds
    WHERE i.inhparent = 'outbox.outbox_audit'::regclass AND bounds IS NOT NULL
$function$

CREATE OR REPLACE FUNCTION outbox.canonical_json(value json)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN outbox.join_pieces(outbox.json_pieces(value), '{}'::text[])

CREATE OR REPLACE FUNCTION outbox.canonical_number(literal text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_sign     TEXT := CASE WHEN left(literal, 1) = '-' THEN '-' ELSE '' END;
    v_mantissa TEXT := split_part(lower(ltrim(literal, '-')), 'e', 1);
    v_power    TEXT := split_part(lower(literal), 'e', 2);
    v_digits   TEXT := replace(v_mantissa, '.', '');
    v_count    INT;
    -- The number is 0.digits * 10^point.
    v_point    INT := length(split_part(v_mantissa, '.', 1)) - length(v_digits);
BEGIN
    v_digits := ltrim(v_digits, '0');
    v_point := v_point + length(v_digits);
    v_digits := rtrim(v_digits, '0');
    v_count := length(v_digits);
    IF v_count = 0 THEN RETURN '0'; END IF;
    -- No text is long enough to make up for an exponent of more than nine digits.
    IF v_count > 17 OR length(ltrim(v_power, '+-0')) > 9 THEN RETURN NULL; END IF;
    IF v_power <> '' THEN v_point := v_point + v_power::int; END IF;
    IF v_point NOT BETWEEN -323 AND 309 THEN RETURN NULL; END IF;
    IF v_point IN (-323, 309)
       AND (v_digits || 'e' || v_point - v_count)::numeric NOT BETWEEN 5e-324 AND 1.7976931348623157e308
    THEN
        RETURN NULL;
    END IF;
    -- No two numbers of up to 15 digits are the same double, unless it is subnormal.
    IF (v_count > 15 OR v_point < -306) AND NOT outbox.is_shortest(v_digits, v_point - v_count) THEN
        RETURN NULL;
    END IF;
    RETURN v_sign || CASE
        WHEN v_point NOT BETWEEN -5 AND 21 THEN
            left(v_digits, 1) || CASE WHEN v_count > 1 THEN '.' ELSE '' END || substr(v_digits, 2)
            || 'e' || CASE WHEN v_point > 0 THEN '+' ELSE '' END || v_point - 1
        WHEN v_point <= 0 THEN '0.' || repeat('0', -v_point) || v_digits
        WHEN v_point < v_count THEN left(v_digits, v_point) || '.' || substr(v_digits, v_point + 1)
        ELSE rpad(v_digits, v_point, '0')
    END;
END $function$

CREATE OR REPLACE FUNCTION outbox.canonical_string(inside text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_quoted TEXT := '"' || replace(replace(inside, E'\x05', E'\\"'), E'\x04', E'\\\\') || '"';
BEGIN
    IF NOT pg_input_is_valid(v_quoted, 'jsonb') THEN RETURN NULL; END IF;
    RETURN to_json(v_quoted::json #>> '{}');
END $function$

CREATE OR REPLACE FUNCTION audit.chain_seal()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_last RECORD;
BEGIN
    SELECT s.block, s.hash, s.after_seq, s.last_seq INTO v_last FROM audit.seals s ORDER BY s.block DESC LIMIT 1;
    IF NEW.block <> COALESCE(v_last.block, 0) + 1
       OR NEW.previous <> COALESCE(v_last.hash, decode(repeat('00', 32), 'hex'))
       OR NOT (NEW.after_seq = COALESCE(v_last.last_seq, 0)
               OR (NEW.after_seq = v_last.after_seq AND NEW.last_seq = v_last.last_seq)) THEN
        RAISE EXCEPTION 'block % does not continue the chain', NEW.block USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $function$

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

CREATE OR REPLACE FUNCTION saga.complete_log_row()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
    SELECT COALESCE(max(l.attempt), 0) + 1 INTO NEW.attempt
    FROM saga.saga_step_logs l
    WHERE l.saga_id = NEW.saga_id AND l.step_index = NEW.step_index AND l.action = NEW.action;
    IF NEW.answer IS NULL AND NEW.status IS NOT NULL THEN
        NEW.answer := CASE NEW.status WHEN 'SUCCESS' THEN 'done' WHEN 'SKIPPED' THEN NULL ELSE 'unknown' END;
        NEW.is_unsent := NEW.status = 'SKIPPED';
        NEW.is_last := NEW.status IN ('FAILED', 'TIMEOUT');
    END IF;
    RETURN NEW;
END $function$

CREATE OR REPLACE FUNCTION jobs.complete_requeue()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
    NEW.completed_at := NULL;
    NEW.resolution := NULL;
    NEW.deferrals := 0;
    NEW.run_at := clock_timestamp();
    NEW.sort_at := NEW.run_at - NEW.priority * interval '1 minute';
    NEW.lease_owner := NULL;
    NEW.lease_until := NULL;
    NEW.lease_lost := false;
    NEW.lease_epoch := nextval('platform.lease_epochs');
    RETURN NEW;
END $function$

CREATE OR REPLACE FUNCTION dlq.count_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    WITH changes AS MATERIALIZED (
        SELECT fingerprint, original_topic, consumer_group, status, COUNT(*) AS messages
        FROM old_rows GROUP BY fingerprint, original_topic, consumer_group, status
    ), topics AS (
        INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
        SELECT original_topic, status, -SUM(messages), 0 FROM changes GROUP BY original_topic, status
    )
    INSERT INTO dlq.group_changes (fingerprint, original_topic, consumer_group, status, messages, arrived)
    SELECT fingerprint, left(original_topic, 249), left(COALESCE(consumer_group, ''), 255), status, -messages, 0
    FROM changes WHERE fingerprint IS NOT NULL;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.count_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    WITH changes AS MATERIALIZED (
        SELECT fingerprint, original_topic, consumer_group, status, COUNT(*) AS messages,
               MIN(created_at) AS first_at, MAX(created_at) AS last_at
        FROM new_rows GROUP BY fingerprint, original_topic, consumer_group, status
    ), topics AS (
        INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
        SELECT original_topic, status, SUM(messages), SUM(messages) FROM changes GROUP BY original_topic, status
    ), grouped AS (
        INSERT INTO dlq.group_changes
            (fingerprint, original_topic, consumer_group, status, messages, arrived, first_at, last_at)
        SELECT fingerprint, left(original_topic, 249), left(COALESCE(consumer_group, ''), 255), status, messages,
               messages, LEAST(first_at, clock_timestamp()), LEAST(last_at, clock_timestamp())
        FROM changes WHERE fingerprint IS NOT NULL
    )
    INSERT INTO dlq.fingerprints (fingerprint, first_at, last_at)
    SELECT fingerprint, LEAST(MIN(first_at), clock_timestamp()), LEAST(MAX(last_at), clock_timestamp())
    FROM changes c
    WHERE fingerprint IS NOT NULL
      AND NOT EXISTS (SELECT FROM dlq.fingerprints f WHERE f.fingerprint = c.fingerprint)
    GROUP BY fingerprint
    ORDER BY fingerprint
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.count_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    TRUNCATE dlq.topic_counts, dlq.group_counts, dlq.group_changes;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.count_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    WITH changes AS MATERIALIZED (
        SELECT fingerprint, original_topic, consumer_group, status, SUM(change) AS messages,
               MIN(created_at) AS first_at, MAX(created_at) AS last_at
        FROM (
            SELECT fingerprint, original_topic, consumer_group, status, created_at, -1 AS change FROM old_rows
            UNION ALL
            SELECT fingerprint, original_topic, consumer_group, status, created_at, 1 AS change FROM new_rows
        ) AS both_rows
        GROUP BY fingerprint, original_topic, consumer_group, status
        HAVING SUM(change) <> 0
    ), topics AS (
        INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
        SELECT original_topic, status, SUM(messages), 0 FROM changes
        GROUP BY original_topic, status HAVING SUM(messages) <> 0
    ), grouped AS (
        INSERT INTO dlq.group_changes
            (fingerprint, original_topic, consumer_group, status, messages, arrived, first_at, last_at)
        SELECT fingerprint, left(original_topic, 249), left(COALESCE(consumer_group, ''), 255), status, messages, 0,
               CASE WHEN messages > 0 THEN LEAST(first_at, clock_timestamp()) END,
               CASE WHEN messages > 0 THEN LEAST(last_at, clock_timestamp()) END
        FROM changes WHERE fingerprint IS NOT NULL
    )
    INSERT INTO dlq.fingerprints (fingerprint, first_at, last_at)
    SELECT fingerprint, LEAST(MIN(first_at), clock_timestamp()), LEAST(MAX(last_at), clock_timestamp())
    FROM changes c
    WHERE fingerprint IS NOT NULL AND messages > 0
      AND NOT EXISTS (SELECT FROM dlq.fingerprints f WHERE f.fingerprint = c.fingerprint)
    GROUP BY fingerprint
    ORDER BY fingerprint
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.delete_archived_facets()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    DELETE FROM dlq.message_facets_archive f USING old_rows o WHERE f.message_id = o.id;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.delete_facets()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    DELETE FROM dlq.message_facets f USING old_rows o
    WHERE f.message_id = o.id AND NOT EXISTS (SELECT FROM dlq.dlq_messages_archive a WHERE a.id = o.id);
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION outbox.drop_old_audit(p_keep interval)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
DECLARE
    v_names TEXT[];
    v_name  TEXT;
BEGIN
    IF p_keep IS NULL OR p_keep < interval '0' THEN
        RAISE EXCEPTION 'outbox.drop_old_audit: p_keep must not be negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_names := ARRAY(SELECT p.name FROM outbox.audit_partitions() p WHERE p.ends_at <= now() - p_keep);
    -- This locks the whole before its part, as everybody does. Somebody else may have dropped it by now.
    FOREACH v_name IN ARRAY v_names LOOP
        EXECUTE format('DROP TABLE IF EXISTS outbox.%I', v_name);
    END LOOP;
    RETURN cardinality(v_names);
END $function$

CREATE OR REPLACE FUNCTION audit.drop_old_months()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
DECLARE
    v_part    RECORD;
    v_last    BIGINT;
    v_events  BIGINT;
    v_dropped INT := 0;
BEGIN
    LOCK TABLE audit.dropped_months IN SHARE ROW EXCLUSIVE MODE;
    FOR v_part IN
        SELECT p.* FROM audit.partitions() p
        WHERE p.ends_at <= now() - CASE p.kept WHEN 'long' THEN interval '7 years' ELSE interval '400 days' END
        ORDER BY p.begins_at
    LOOP
        EXECUTE format('SELECT max(seq), count(*) FROM audit.%I', v_part.name) INTO v_last, v_events;
        CONTINUE WHEN v_last > COALESCE((SELECT max(s.last_seq) FROM audit.seals s), 0);
        EXECUTE format('DROP TABLE audit.%I', v_part.name);
        INSERT INTO audit.dropped_months (kept, begins_at, ends_at, events)
        VALUES (v_part.kept, v_part.begins_at, v_part.ends_at, v_events);
        PERFORM audit.record(
            'audit:months:drop', 'audit/months/' || v_part.name, 'older than its retention', 'success',
            jsonb_build_object('begins_at', v_part.begins_at, 'ends_at', v_part.ends_at, 'events', v_events), 'system');
        v_dropped := v_dropped + 1;
    END LOOP;
    RETURN v_dropped;
END $function$

CREATE OR REPLACE FUNCTION jobs.enqueue(p_queue text, p_payload jsonb, p_dedupe_key text DEFAULT NULL::text, p_priority integer DEFAULT 0, p_run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, p_max_retries integer DEFAULT NULL::integer, p_trace text DEFAULT NULL::text, p_created_by text DEFAULT NULL::text, OUT job_id uuid, OUT status text, OUT is_duplicate boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_now    TIMESTAMPTZ := clock_timestamp();
    v_run_at TIMESTAMPTZ := COALESCE(p_run_at, v_now);
    v_notified TEXT;
BEGIN
    LOOP
        -- The same statement notifies idle workers: a second one would cost a tenth of the function's CPU time.
        INSERT INTO jobs.job_queue AS j
            (queue, payload, max_retries, dedupe_key, priority, run_at, sort_at, created_at, trace,
             created_by)
        VALUES (p_queue, p_payload,
                COALESCE(p_max_retries, (SELECT q.max_retries FROM jobs.queues q WHERE q.queue = p_queue), 3),
                p_dedupe_key, p_priority, v_run_at,
                CASE WHEN v_run_at <= v_now THEN v_now - p_priority * interval '1 minute' ELSE v_run_at END,
                v_now, p_trace, p_created_by)
        ON CONFLICT (queue, dedupe_key)
            WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'running', 'failed')
            DO NOTHING
        RETURNING j.job_id, j.status, false,
                  CASE WHEN v_run_at <= v_now + interval '10 seconds' AND EXISTS (
                      SELECT 1 FROM platform.idle_workers
                      WHERE channel = 'jobs:' || p_queue AND idle_until > clock_timestamp())
                  THEN pg_notify('redrive', 'jobs:' || p_queue)::text END
        INTO job_id, status, is_duplicate, v_notified;
        EXIT WHEN FOUND;
        SELECT j.job_id, j.status, true INTO job_id, status, is_duplicate
        FROM jobs.job_queue j
        WHERE j.queue = p_queue AND j.dedupe_key = p_dedupe_key AND j.status IN ('pending', 'running', 'failed');
        -- Not found: the other job has just ended, and the key is free.
        EXIT WHEN FOUND;
    END LOOP;
END $function$

CREATE OR REPLACE FUNCTION jobs.enqueue_many(p_queue text, p_jobs jsonb)
 RETURNS TABLE(job_id uuid, status text, is_duplicate boolean)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
#variable_conflict use_column
DECLARE
    v_now         TIMESTAMPTZ := clock_timestamp();
    v_queue       jobs.queue_name := p_queue;
    v_max_retries INT := COALESCE((SELECT q.max_retries FROM jobs.queues q WHERE q.queue = p_queue), 3);
    v_is_due      BOOLEAN := false;
    v_job         RECORD;
BEGIN
    FOR v_job IN
        WITH given AS MATERIALIZED (
            SELECT j.position, COALESCE(j.job_id, platform.new_id()) AS job_id,
                   COALESCE(j.payload, 'null') AS payload, j.dedupe_key,
                   COALESCE(j.priority, 0) AS priority, COALESCE(j.run_at, v_now) AS run_at,
                   COALESCE(j.max_retries, v_max_retries) AS max_retries, j.trace
            FROM ROWS FROM (jsonb_to_recordset(p_jobs) AS (
                job_id UUID, payload JSONB, dedupe_key TEXT, priority INT, run_at TIMESTAMPTZ, max_retries INT,
                trace TEXT)) WITH ORDINALITY
                AS j (job_id, payload, dedupe_key, priority, run_at, max_retries, trace, position)
        ), placed AS (
            SELECT *, CASE WHEN run_at <= v_now THEN v_now - priority * interval '1 minute' ELSE run_at END AS sort_at
            FROM given
        ), free AS (
            INSERT INTO jobs.job_queue (job_id, queue, payload, max_retries, priority, run_at, sort_at, created_at, trace)
            SELECT job_id, v_queue, payload, max_retries, priority, run_at, sort_at, v_now, trace
            FROM placed WHERE dedupe_key IS NULL
        ), keyed AS (
            -- In the order of the keys, so that two of these statements cannot wait for each other.
            INSERT INTO jobs.job_queue AS q
                (job_id, queue, payload, max_retries, dedupe_key, priority, run_at, sort_at, created_at, trace)
            SELECT job_id, v_queue, payload, max_retries, dedupe_key, priority, run_at, sort_at, v_now, trace
            FROM placed WHERE dedupe_key IS NOT NULL ORDER BY dedupe_key, position
            ON CONFLICT (queue, dedupe_key)
                WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'running', 'failed')
                DO NOTHING
            RETURNING q.job_id
        )
        SELECT given.*, given.dedupe_key IS NULL OR keyed.job_id IS NOT NULL AS is_new
        FROM given LEFT JOIN keyed ON keyed.job_id = given.job_id
        ORDER BY given.position
    LOOP
        IF v_job.is_new THEN
            job_id := v_job.job_id;
            status := 'pending';
            is_duplicate := false;
            v_is_due := v_is_due OR v_job.run_at <= v_now + interval '10 seconds';
        ELSE
            SELECT e.job_id, e.status, e.is_duplicate INTO job_id, status, is_duplicate
            FROM jobs.enqueue(p_queue, v_job.payload, v_job.dedupe_key, v_job.priority, v_job.run_at,
                              v_job.max_retries, v_job.trace) e;
        END IF;
        RETURN NEXT;
    END LOOP;
    PERFORM pg_notify('redrive', 'jobs:' || p_queue)
    WHERE v_is_due AND EXISTS (
        SELECT 1 FROM platform.idle_workers
        WHERE channel = 'jobs:' || p_queue AND idle_until > clock_timestamp());
END $function$

CREATE OR REPLACE FUNCTION saga.flaw_of_payload(p_payload jsonb)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_text TEXT COLLATE "C" := p_payload::text;
BEGIN
    IF jsonb_typeof(p_payload) <> 'object' THEN
        RETURN 'must be an object';
    END IF;
    -- A request of the API may have 512 levels, of which the first is the request itself.
    IF length(v_text) > 1000 AND jsonb_path_exists(
        p_payload, 'strict $.**{511} ? (@.type() == "object" || @.type() == "array")')
    THEN
        RETURN 'must not be nested deeper than 511 levels';
    END IF;
    IF strpos(v_text, '"__proto__"') > 0 AND jsonb_path_exists(p_payload, 'lax $.**."__proto__"') THEN
        RETURN 'must not have __proto__ as a name';
    END IF;
    IF v_text ~ '[0-9.]{16}' AND EXISTS (
        -- As one array: jsonb_path_query moves all that is left with each row that it gives.
        SELECT 1 FROM jsonb_array_elements_text(
            jsonb_path_query_array(p_payload, 'strict $.** ? (@.type() == "number")')) AS found (number)
        WHERE length(found.number) > 15 AND NOT saga.is_exact_number(found.number::numeric))
    THEN
        RETURN 'must only have numbers that a double holds exactly: write others as texts';
    END IF;
    RETURN NULL;
END $function$

CREATE OR REPLACE FUNCTION dlq.fold_group_changes()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
    v_oldest TIMESTAMPTZ := date_trunc('hour', clock_timestamp(), 'UTC') - INTERVAL '24 hours';
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('dlq.fold_group_changes', 0)) THEN
        RETURN;
    END IF;
    WITH changed AS (
        DELETE FROM dlq.group_changes
        RETURNING fingerprint, original_topic, consumer_group, status, hour, messages, arrived, first_at, last_at
    ), expired AS (
        DELETE FROM dlq.group_counts WHERE hour > 'epoch' AND hour < v_oldest
        RETURNING fingerprint, original_topic, consumer_group, status, hour, messages, arrived
    ), counted AS (
        INSERT INTO dlq.group_counts AS c
            (fingerprint, original_topic, consumer_group, status, hour, messages, arrived)
        SELECT fingerprint, original_topic, consumer_group, status, kept_hour, SUM(messages), SUM(arrived)
        FROM (
            SELECT fingerprint, original_topic, consumer_group, status, messages, arrived,
                   CASE WHEN hour < v_oldest THEN 'epoch'::timestamptz ELSE hour END AS kept_hour
            FROM (
                SELECT fingerprint, original_topic, consumer_group, status, hour, messages, arrived FROM changed
                UNION ALL
                SELECT fingerprint, original_topic, consumer_group, status, hour, messages, arrived FROM expired
            ) AS moved
        ) AS by_hour
        GROUP BY fingerprint, original_topic, consumer_group, status, kept_hour
        HAVING SUM(messages) <> 0 OR (SUM(arrived) <> 0 AND kept_hour > 'epoch')
        ON CONFLICT (fingerprint, original_topic, consumer_group, status, hour)
        DO UPDATE SET messages = c.messages + EXCLUDED.messages, arrived = c.arrived + EXCLUDED.arrived
    ), seen AS (
        SELECT fingerprint, MIN(first_at) AS first_at, MAX(last_at) AS last_at FROM changed GROUP BY fingerprint
    )
    UPDATE dlq.fingerprints f
    SET first_at = LEAST(f.first_at, seen.first_at), last_at = GREATEST(f.last_at, seen.last_at)
    FROM seen
    WHERE f.fingerprint = seen.fingerprint AND (seen.first_at < f.first_at OR seen.last_at > f.last_at);
END;
$function$

CREATE OR REPLACE FUNCTION dlq.forget_versions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
    v_ids UUID[] := ARRAY(SELECT id FROM old_rows WHERE version > 0);
BEGIN
    IF cardinality(v_ids) > 0 THEN
        DELETE FROM dlq.message_versions v
        WHERE v.message_id = ANY(v_ids)
          AND NOT EXISTS (SELECT FROM dlq.dlq_messages m WHERE m.id = v.message_id)
          AND NOT EXISTS (SELECT FROM dlq.dlq_messages_archive a WHERE a.id = v.message_id);
    END IF;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.index_messages(p_ids uuid[], p_has_text boolean DEFAULT true)
 RETURNS bigint
 LANGUAGE sql
AS $function$
    WITH live AS (
        INSERT INTO dlq.message_facets AS f (message_id, created_at, error_class, key_hash, consumer_group, trace_id, search)
        SELECT t.id, t.created_at, left(t.error_class, 256), COALESCE(t.key_hmac, sha256(t.message_key)), left(t.consumer_group, 255),
               CASE WHEN t.data_key IS NULL THEN dlq.trace_id_of(t.headers) END,
               CASE WHEN p_has_text
                    THEN dlq.search_vector(t.error_class, t.error_message, t.payload,
                                            CASE WHEN t.data_key IS NULL THEN t.raw_value END) ELSE '' END
        FROM dlq.dlq_messages t WHERE t.id = ANY(p_ids)
        ON CONFLICT (message_id) DO UPDATE
        SET created_at = EXCLUDED.created_at, error_class = EXCLUDED.error_class, key_hash = EXCLUDED.key_hash,
            consumer_group = EXCLUDED.consumer_group, trace_id = EXCLUDED.trace_id, search = EXCLUDED.search
        RETURNING 1
    ), archived AS (
        INSERT INTO dlq.message_facets_archive AS f
            (message_id, created_at, error_class, key_hash, consumer_group, trace_id, search)
        SELECT t.id, t.created_at, left(t.error_class, 256), COALESCE(t.key_hmac, sha256(t.message_key)), left(t.consumer_group, 255),
               CASE WHEN t.data_key IS NULL THEN dlq.trace_id_of(t.headers) END,
               CASE WHEN p_has_text
                    THEN dlq.search_vector(t.error_class, t.error_message, t.payload,
                                            CASE WHEN t.data_key IS NULL THEN t.raw_value END) ELSE '' END
        FROM dlq.dlq_messages_archive t WHERE t.id = ANY(p_ids)
        ON CONFLICT (message_id) DO UPDATE
        SET created_at = EXCLUDED.created_at, error_class = EXCLUDED.error_class, key_hash = EXCLUDED.key_hash,
            consumer_group = EXCLUDED.consumer_group, trace_id = EXCLUDED.trace_id, search = EXCLUDED.search
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM live) + (SELECT count(*) FROM archived);
$function$

CREATE OR REPLACE FUNCTION outbox.insert_order(p_idempotency_key text, p_destination text, p_request jsonb, p_digest text, p_ordering_key text, p_trace_id text, p_traceparent text, p_actor text, p_supersedes_id bigint DEFAULT NULL::bigint, p_ordering_seq bigint DEFAULT NULL::bigint, p_created_by text DEFAULT NULL::text, OUT id bigint, OUT outcome text, OUT http_status integer, OUT response_payload json)
 RETURNS record
 LANGUAGE plpgsql
 SET lock_timeout TO '500ms'
 SET search_path TO 'pg_catalog'
AS $function$
#variable_conflict use_column
DECLARE
    v_id     BIGINT;
    v_seq    BIGINT := p_ordering_seq;
    v_now    TIMESTAMPTZ := clock_timestamp();
    v_answer JSON;
    v_known  RECORD;
BEGIN
    LOOP
        BEGIN
            v_id := nextval('outbox.outbox_orders_id_seq');
            v_answer := json_build_object(
                'id', v_id, 'idempotency_key', p_idempotency_key, 'destination', p_destination,
                'ordering_key', p_ordering_key, 'status', 'queued', 'request_digest', p_digest,
                'created_at', to_char(v_now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'));
            INSERT INTO outbox.idempo_ledger
                (idempotency_key, request_digest, outbox_id, http_status, response_payload, created_at, updated_at)
            VALUES (p_idempotency_key, p_digest, v_id, 201, v_answer, v_now, v_now)
            ON CONFLICT (idempotency_key) DO NOTHING;
            IF FOUND THEN
                IF p_ordering_key IS NOT NULL AND v_seq IS NULL THEN
                    PERFORM pg_advisory_xact_lock(
                        hashtextextended(p_ordering_key, hashtextextended(p_destination, 4)));
                    v_seq := nextval('outbox.ordering_seqs');
                END IF;
                INSERT INTO outbox.outbox_orders
                    (id, idempotency_key, request_json, request_digest, status, next_attempt_at, created_at, updated_at,
                     destination, ordering_key, ordering_seq, trace_id, traceparent, supersedes_id,
                     created_by)
                VALUES (v_id, p_idempotency_key, p_request, p_digest, 'queued', v_now, v_now, v_now,
                        p_destination, p_ordering_key, v_seq, p_trace_id, p_traceparent, p_supersedes_id,
                        p_created_by);
                INSERT INTO outbox.outbox_audit
                    (outbox_id, status_from, status_to, retry_count, idempotency_key, trace_id, actor)
                VALUES (v_id, NULL, 'queued', 0, p_idempotency_key, p_trace_id, p_actor);
                PERFORM pg_notify('redrive', 'outbox:' || p_destination)
                WHERE EXISTS (
                    SELECT 1 FROM platform.idle_workers
                    WHERE channel = 'outbox:' || p_destination AND idle_until > clock_timestamp());
                id := v_id;
                outcome := 'created';
                http_status := 201;
                response_payload := v_answer;
                RETURN;
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN
                outcome := 'busy';
                RETURN;
            WHEN unique_violation THEN
                -- An order of the system itself has this key; it has no row in the ledger.
                SELECT o.id, 'mismatch' INTO id, outcome
                FROM outbox.outbox_orders o WHERE o.idempotency_key = p_idempotency_key;
                IF FOUND THEN
                    RETURN;
                END IF;
                RAISE;
        END;
        SELECT l.outbox_id, l.request_digest, l.response_payload INTO v_known
        FROM outbox.idempo_ledger l WHERE l.idempotency_key = p_idempotency_key;
        -- Not found: it was moved to the archive this moment, and the key is free.
        IF FOUND THEN
            id := v_known.outbox_id;
            outcome := CASE WHEN v_known.request_digest = p_digest THEN 'replayed' ELSE 'mismatch' END;
            http_status := CASE WHEN outcome = 'replayed' THEN 200 END;
            response_payload := CASE WHEN outcome = 'replayed' THEN v_known.response_payload END;
            RETURN;
        END IF;
    END LOOP;
END $function$

CREATE OR REPLACE FUNCTION saga.is_exact_number(p_number numeric)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET extra_float_digits TO '1'
AS $function$
DECLARE
    v_number NUMERIC := trim_scale(abs(p_number));
    v_double FLOAT8;
    v_bits   BIGINT;
    v_exact  NUMERIC;
    v_unit   NUMERIC;
    v_other  NUMERIC;
BEGIN
    IF v_number = 0 THEN RETURN true; END IF;
    IF v_number NOT BETWEEN 5e-324 AND 1.7976931348623157e308 THEN RETURN false; END IF;
    v_double := v_number;
    -- PostgreSQL's own shortest form differs in one thing: it never is a number halfway between two doubles, and
    -- ECMAScript's may be. Below 2^53 such numbers have 17 digits or more, and where 17, the double itself has 16.
    IF v_double < 9007199254740992 THEN
        RETURN v_double::text::numeric = v_number;
    END IF;
    -- Beyond that there are only integers.
    IF scale(v_number) > 0 THEN RETURN false; END IF;
    v_bits := ('x' || encode(float8send(v_double), 'hex'))::bit(64)::bigint;
    v_exact := ((v_bits & 4503599627370495) + 4503599627370496) * power(2::numeric, (v_bits >> 52) - 1075);
    v_unit := ('1e' || length(v_number::text) - length(rtrim(v_number::text, '0')))::numeric;
    IF v_number / v_unit >= 1e17 THEN RETURN false; END IF;
    -- The neighbours with a digit less, then those with as many: no shorter one may read as the same double, and none
    -- of the same length that does may be nearer to it.
    FOREACH v_other IN ARRAY ARRAY[
        v_number - mod(v_number, v_unit * 10), v_number - mod(v_number, v_unit * 10) + v_unit * 10,
        v_number - v_unit, v_number + v_unit]
    LOOP
        CONTINUE WHEN v_other > 1.7976931348623157e308 OR v_other::float8 <> v_double;
        IF mod(v_other, v_unit * 10) = 0 OR abs(v_other - v_exact) < abs(v_number - v_exact) THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $function$

CREATE OR REPLACE FUNCTION outbox.is_shortest(digits text, exponent integer)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET extra_float_digits TO '1'
AS $function$
DECLARE
    v_double  FLOAT8 := (digits || 'e' || exponent)::float8;
    v_integer BIGINT := digits;
    v_bits    BIGINT;
    v_exact   NUMERIC;
    v_other   BIGINT;
BEGIN
    -- PostgreSQL's own shortest form differs in one thing: it never is a number halfway between two doubles, and
    -- ECMAScript's may be. Below 2^53 such numbers have 17 digits or more, and where 17, the double itself has 16.
    IF v_double < 9007199254740992 THEN
        RETURN btrim(replace(split_part(v_double::text, 'e', 1), '.', ''), '0') = digits;
    END IF;
    v_bits := ('x' || encode(float8send(v_double), 'hex'))::bit(64)::bigint;
    v_exact := ((v_bits & 4503599627370495) + 4503599627370496) * power(2::numeric, (v_bits >> 52) - 1075);
    -- The neighbours with a digit less, then those with as many.
    FOREACH v_other IN ARRAY
        ARRAY[v_integer / 10 * 10, v_integer / 10 * 10 + 10, v_integer - 1, v_integer + 1]
    LOOP
        CONTINUE WHEN (v_other || 'e' || exponent)::numeric > 1.7976931348623157e308;
        CONTINUE WHEN (v_other || 'e' || exponent)::float8 <> v_double;
        IF v_other % 10 = 0
           OR abs((v_other || 'e' || exponent)::numeric - v_exact) < abs((digits || 'e' || exponent)::numeric - v_exact)
        THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $function$

CREATE OR REPLACE FUNCTION outbox.join_pieces(pieces text[], without text[])
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_pieces  TEXT[] := pieces;
    v_piece   TEXT;
    v_at      INT := 0;
    v_depth   INT := 0;
    -- By depth: where the open object or array begins, and the last member of it so far, or 0.
    v_opened  INT[];
    v_member  INT[];
    -- By member: the place of its object, of its key, and behind its value.
    v_owners  INT[] := '{}';
    v_keys    TEXT[] := '{}';
    v_starts  INT[] := '{}';
    v_stops   INT[] := '{}';
    -- By piece: which one follows it, where that is not simply the next.
    v_next    INT[] := array_fill(NULL::int, ARRAY[cardinality(pieces)]);
    v_owner   INT := 0;
    v_key     TEXT;
    v_last    INT;
    v_end     INT;
    v_joined  TEXT[] := '{}';
    v_row     RECORD;
BEGIN
    FOREACH v_piece IN ARRAY pieces LOOP
        v_at := v_at + 1;
        CONTINUE WHEN v_at = 1;
        CASE left(v_piece, 1)
        WHEN '{', '[' THEN
            v_depth := v_depth + 1;
            IF v_depth > 512 THEN RETURN NULL; END IF;
            v_opened[v_depth] := v_at;
            v_member[v_depth] := 0;
        WHEN '"' THEN
            IF v_member[v_depth] > 0 THEN v_stops[v_member[v_depth]] := v_at; END IF;
            v_keys := v_keys || split_part(v_piece, E'\x03', 1);
            v_owners := v_owners || v_opened[v_depth];
            v_starts := v_starts || v_at;
            v_member[v_depth] := cardinality(v_keys);
        ELSE
            IF v_member[v_depth] > 0 THEN v_stops[v_member[v_depth]] := v_at; END IF;
            v_depth := v_depth - 1;
        END CASE;
    END LOOP;

    FOR v_row IN
        SELECT owner, key, start, stop
        FROM unnest(v_owners, v_keys, v_starts, v_stops) AS members (owner, key, start, stop)
        ORDER BY owner, outbox.utf16_order(
            CASE WHEN strpos(key, E'\\') = 0 THEN substr(key, 2, length(key) - 2) ELSE key::json #>> '{}' END
        ) COLLATE "C"
    LOOP
        IF v_row.key = '"__proto__"' OR (v_row.owner = v_owner AND v_row.key = v_key) THEN RETURN NULL; END IF;
        IF v_row.owner <> v_owner THEN
            IF v_owner > 0 THEN v_next[v_last] := v_end; END IF;
            v_owner := v_row.owner;
            v_last := v_row.owner;
            v_end := 0;
        END IF;
        v_key := v_row.key;
        v_end := greatest(v_end, v_row.stop);
        CONTINUE WHEN v_owner = 2 AND v_key = ANY (without);
        IF v_last <> v_owner THEN v_pieces[v_row.start] := ',' || v_pieces[v_row.start]; END IF;
        v_next[v_last] := v_row.start;
        v_last := v_row.stop - 1;
    END LOOP;
    IF v_owner > 0 THEN v_next[v_last] := v_end; END IF;

    v_at := 1;
    WHILE v_at <= cardinality(pieces) LOOP
        v_joined := v_joined || v_pieces[v_at];
        v_at := coalesce(v_next[v_at], v_at + 1);
    END LOOP;
    RETURN replace(array_to_string(v_joined, ''), E'\x03', '');
END $function$

CREATE OR REPLACE FUNCTION platform.json_bytes(p_value jsonb)
 RETURNS bigint
 LANGUAGE plpgsql
 IMMUTABLE STRICT
AS $function$
BEGIN
    RETURN pg_catalog.octet_length(p_value::pg_catalog.text);
EXCEPTION WHEN program_limit_exceeded OR out_of_memory THEN
    RETURN 1073741824;
END $function$

CREATE OR REPLACE FUNCTION outbox.json_pieces(value json)
 RETURNS text[]
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_structure TEXT;
    v_strings   TEXT[];
BEGIN
    -- Once escaped quotes are out of the way, every second part between quotes is the inside of a string.
    SELECT string_agg(part, E'\x02' ORDER BY n) FILTER (WHERE n % 2 = 1),
           array_agg(
               CASE
                   WHEN part ~ E'[\\\\\x04\x05]' COLLATE "C" THEN outbox.canonical_string(part)
                   ELSE '"' || part || '"'
               END ORDER BY n) FILTER (WHERE n % 2 = 0)
    INTO v_structure, v_strings
    FROM string_to_table(replace(replace(value::text, E'\\\\', E'\x04'), E'\\"', E'\x05'), '"')
         WITH ORDINALITY AS parts (part, n);
    IF array_position(v_strings, NULL) IS NOT NULL THEN RETURN NULL; END IF;

    v_structure := translate(v_structure, E' \t\n\r', '');
    -- Whatever else is a number is canonical as it stands: up to 15 digits, no exponent, no zeros at the end.
    IF v_structure ~ '[0-9][eE]|-0|[0-9.]{16}|[.]000000|[.][0-9]*0(?:[^0-9]|$)' COLLATE "C" THEN
        SELECT CASE WHEN bool_and(canonical IS NOT NULL) THEN string_agg(canonical, '' ORDER BY n) END
        INTO v_structure
        FROM (
            SELECT n,
                   CASE
                       WHEN atom[1] ~ '^[-0-9]' COLLATE "C" THEN outbox.canonical_number(atom[1])
                       ELSE atom[1]
                   END AS canonical
            FROM regexp_matches(v_structure, '-?[0-9][-+.0-9eE]*|[^-0-9]+' COLLATE "C", 'g')
                 WITH ORDINALITY AS atoms (atom, n)
        ) AS atoms;
        IF v_structure IS NULL THEN RETURN NULL; END IF;
    END IF;

    v_structure := replace(replace(v_structure, E'\x02:', E'\x01\x02\x03:'), E',\x01', E'\x01');
    v_structure := replace(replace(v_structure, '{', E'\x01{'), '}', E'\x01}');
    v_structure := replace(replace(v_structure, '[', E'\x01['), ']', E'\x01]');
    SELECT string_agg(piece || coalesce(string, ''), '' ORDER BY n)
    INTO v_structure
    FROM ROWS FROM (string_to_table(v_structure, E'\x02'), unnest(v_strings)) WITH ORDINALITY
         AS filled (piece, string, n);
    RETURN string_to_array(v_structure, E'\x01');
END $function$

CREATE OR REPLACE FUNCTION audit.keep_of(p_action text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
RETURN CASE WHEN (p_action = 'saga:sagas:repair'::text) THEN 'long'::text ELSE 'usual'::text END

CREATE OR REPLACE FUNCTION saga.log_unknown(p_saga_id uuid, p_step integer, p_action text, p_answer text, p_error text)
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog'
AS $function$
    INSERT INTO saga.saga_step_logs
        (saga_id, step_index, step_name, action, attempt, status, answer, is_unsent, is_last, error_message,
         started_at, completed_at)
    SELECT p_saga_id, p_step, COALESCE(max(l.step_name), ''), p_action,
           1 + COALESCE(max(l.attempt) FILTER (WHERE l.action = p_action), 0),
           CASE p_answer WHEN 'unknown' THEN 'TIMEOUT' ELSE 'FAILED' END, p_answer, p_answer = 'unserved',
           p_answer = 'unknown', p_error, clock_timestamp(), clock_timestamp()
    FROM saga.saga_step_logs l WHERE l.saga_id = p_saga_id AND l.step_index = p_step
$function$

CREATE OR REPLACE FUNCTION outbox.make_audit_months()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
DECLARE
    v_begin TIMESTAMPTZ;
    v_name  TEXT;
    v_made  INT := 0;
BEGIN
    -- One at a time changes the partitions, in however many replicas; those who write and read do not notice.
    LOCK TABLE outbox.outbox_audit IN SHARE UPDATE EXCLUSIVE MODE;
    FOR v_begin IN
        SELECT date_trunc('month', now()) + ahead * interval '1 month' FROM generate_series(0, 2) AS ahead
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT 1 FROM outbox.audit_partitions() p WHERE v_begin >= p.begins_at AND v_begin < p.ends_at);
        IF v_begin < clock_timestamp() + interval '1 hour' THEN
            LOCK TABLE outbox.outbox_audit IN ACCESS EXCLUSIVE MODE;
        END IF;
        v_name := to_char(v_begin, '"outbox_audit_"YYYY_MM');
        EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.outbox_audit INCLUDING DEFAULTS)', v_name);
        EXECUTE format('CREATE TRIGGER outbox_audit_is_not_truncated BEFORE TRUNCATE ON outbox.%I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change_of_audit()', v_name);
        EXECUTE format('ALTER TABLE outbox.outbox_audit ATTACH PARTITION outbox.%I FOR VALUES FROM (%L) TO (%L)',
                       v_name, v_begin, v_begin + interval '1 month');
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END $function$

CREATE OR REPLACE FUNCTION audit.make_months()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
DECLARE
    v_one  RECORD;
    v_made INT := 0;
BEGIN
    LOCK TABLE audit.events_usual, audit.events_long IN SHARE UPDATE EXCLUSIVE MODE;
    FOR v_one IN
        SELECT 'usual' AS kept, 'events_usual' AS parent, b AS begins_at, b + interval '1 month' AS ends_at,
               to_char(b, '"events_usual_"YYYY_MM') AS name
        FROM generate_series(date_trunc('month', now()), date_trunc('month', now()) + interval '12 months', '1 month') AS b
        UNION ALL
        SELECT 'long', 'events_long', b, b + interval '1 year', to_char(b, '"events_long_"YYYY')
        FROM generate_series(date_trunc('year', now()), date_trunc('year', now()) + interval '1 year', '1 year') AS b
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT 1 FROM audit.partitions() p
            WHERE p.kept = v_one.kept AND p.begins_at < v_one.ends_at AND p.ends_at > v_one.begins_at);
        -- Made first and attached then, it takes no lock that inserts would wait for.
        EXECUTE format('CREATE TABLE audit.%I (LIKE audit.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', v_one.name);
        EXECUTE format('CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON audit.%I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()', v_one.name);
        EXECUTE format('ALTER TABLE audit.%I ATTACH PARTITION audit.%I FOR VALUES FROM (%L) TO (%L)',
                       v_one.parent, v_one.name, v_one.begins_at, v_one.ends_at);
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END $function$

CREATE OR REPLACE FUNCTION platform.new_id()
 RETURNS uuid
 LANGUAGE sql
 PARALLEL SAFE
AS $function$
    SELECT (overlay(
        pg_catalog.lpad(pg_catalog.to_hex((
            pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
            OPERATOR(pg_catalog.*) 4096000)::pg_catalog.int8), 15, '0')
            PLACING '7' FROM 13 FOR 0)
        OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.gen_random_uuid()::pg_catalog.text, 20)
        )::pg_catalog.uuid
$function$

CREATE OR REPLACE FUNCTION dlq.notify_indexer()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM pg_notify('redrive', 'dlq_index')
    WHERE EXISTS (
        SELECT FROM platform.idle_workers WHERE channel = 'dlq_index' AND idle_until > clock_timestamp());
END;
$function$

CREATE OR REPLACE FUNCTION audit.partitions(OUT name text, OUT kept text, OUT begins_at timestamp with time zone, OUT ends_at timestamp with time zone)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
    SELECT part.relname, CASE WHEN i.inhparent = 'audit.events_long'::regclass THEN 'long' ELSE 'usual' END,
           bounds[1]::timestamptz, bounds[2]::timestamptz
    FROM pg_inherits i
    JOIN pg_class part ON part.oid = i.inhrelid
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(part.relpartbound, part.oid), '^FOR VALUES FROM \(''(.+)''\) TO \(''(.+)''\)$') AS bounds
    WHERE i.inhparent IN ('audit.events_usual'::regclass, 'audit.events_long'::regclass)
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

CREATE OR REPLACE FUNCTION dlq.queue_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    DELETE FROM dlq.message_facets WHERE message_id = NEW.id;
    INSERT INTO dlq.index_queue (message_ids) VALUES (ARRAY[NEW.id]);
    PERFORM dlq.notify_indexer();
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.queue_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    INSERT INTO dlq.index_queue (message_ids)
    SELECT array_agg(id) FROM (SELECT id, (row_number() OVER () - 1) / 100 AS part FROM new_rows) AS numbered
    GROUP BY part;
    PERFORM dlq.notify_indexer();
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.readable_text(p_bytes bytea)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE STRICT
AS $function$
DECLARE
    v_length INT := octet_length(p_bytes);
BEGIN
    FOR i IN 1..LEAST(3, v_length) LOOP
        CONTINUE WHEN get_byte(p_bytes, v_length - i) BETWEEN 128 AND 191;
        IF get_byte(p_bytes, v_length - i) >= 192 THEN
            v_length := v_length - i;
        END IF;
        EXIT;
    END LOOP;
    RETURN convert_from(substring(p_bytes FROM 1 FOR v_length), 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN regexp_replace(encode(p_bytes, 'escape'), '\\[0-7]{3}', ' ', 'g');
END;
$function$

CREATE OR REPLACE FUNCTION audit.record(p_action text, p_resource text, p_reason text DEFAULT NULL::text, p_outcome text DEFAULT 'success'::text, p_detail jsonb DEFAULT NULL::jsonb, p_actor_type text DEFAULT 'cli'::text, p_actor_name text DEFAULT NULL::text, p_topics text[] DEFAULT NULL::text[], p_item_count integer DEFAULT 1, p_operation_id uuid DEFAULT NULL::uuid)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_seq BIGINT;
BEGIN
    IF p_actor_type NOT IN ('cli', 'sdk', 'system') THEN
        RAISE EXCEPTION 'audit.record: p_actor_type must be cli, sdk or system' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO audit.events
        (kept, actor_type, actor_id, actor_name, action, outcome, reason, resource, topics, operation_id, item_count,
         detail, address)
    VALUES (audit.keep_of(p_action), p_actor_type, 'db:' || session_user, left(COALESCE(p_actor_name, session_user), 255),
            p_action, p_outcome, left(p_reason, 4000), left(p_resource, 500), p_topics, p_operation_id, p_item_count,
            p_detail, host(inet_client_addr()))
    RETURNING seq INTO v_seq;
    RETURN v_seq;
END $function$

CREATE OR REPLACE FUNCTION audit.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
    RAISE EXCEPTION '%.% is append-only: % is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $function$

CREATE OR REPLACE FUNCTION outbox.refuse_change_of_audit()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    RAISE EXCEPTION 'the audit of the outbox is append-only' USING ERRCODE = 'insufficient_privilege';
END $function$

CREATE OR REPLACE FUNCTION saga.refuse_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM saga.saga_states_archive a WHERE a.id = OLD.id) THEN
        RAISE EXCEPTION 'saga % is not archived: its history would be lost', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END $function$

CREATE OR REPLACE FUNCTION platform.refuse_large_json()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
DECLARE
    v_bytes BIGINT;
BEGIN
    EXECUTE format('SELECT platform.json_bytes(($1).%I)', TG_ARGV[0]) INTO v_bytes USING NEW;
    RAISE EXCEPTION '%.%.% is too large: it takes % bytes as text, at most 16777216 are accepted',
        TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0], v_bytes
        USING ERRCODE = 'program_limit_exceeded',
              HINT = 'Numbers count as PostgreSQL writes them: 1e308 takes 309 bytes. Keep large data elsewhere and '
                     'store a reference to it.';
END $function$

CREATE OR REPLACE FUNCTION saga.refuse_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
    RAISE EXCEPTION 'saga.% must not be truncated: the history of its sagas would be lost', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $function$

CREATE OR REPLACE FUNCTION saga.register_workflow(p_hash text, p_name text, p_definition jsonb, p_makes_current boolean, OUT outcome text)
 RETURNS text
 LANGUAGE plpgsql
 SET lock_timeout TO '500ms'
 SET search_path TO 'pg_catalog'
AS $function$
DECLARE
    v_flaw TEXT := CASE
        WHEN p_name IS NULL OR length(p_name) NOT BETWEEN 1 AND 255 THEN 'name must be a text of 1 to 255 characters'
        WHEN p_hash IS NULL OR p_hash COLLATE "C" !~ '^sha256:[0-9a-f]{64}$'
            THEN 'hash must be sha256: and 64 hexadecimal digits'
        WHEN p_definition ->> 'name' IS DISTINCT FROM p_name THEN 'definition must have the name ' || p_name
    END;
BEGIN
    IF v_flaw IS NULL THEN
        INSERT INTO saga.workflow_definitions (hash, name, definition) VALUES (p_hash, p_name, p_definition)
        ON CONFLICT (hash) DO NOTHING;
        outcome := CASE WHEN FOUND THEN 'registered' ELSE 'known' END;
        SELECT 'hash belongs to the workflow ' || d.name INTO v_flaw
        FROM saga.workflow_definitions d WHERE d.hash = p_hash AND d.name <> p_name;
    END IF;
    IF v_flaw IS NOT NULL THEN
        RAISE EXCEPTION 'saga.register_workflow: %', v_flaw USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF outcome = 'registered' OR p_makes_current THEN
        INSERT INTO saga.workflows (name, current_hash) VALUES (p_name, p_hash)
        ON CONFLICT (name) DO UPDATE SET current_hash = EXCLUDED.current_hash, updated_at = clock_timestamp();
    END IF;
EXCEPTION WHEN lock_not_available THEN
    outcome := 'busy';
END $function$

CREATE OR REPLACE FUNCTION outbox.request_digest(destination text, ordering_key text, request json)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (json_typeof(request) = 'object'::text) THEN ('sha256:'::text || encode(sha256(convert_to((((((('{"destination":'::text || to_json(destination)) || ',"ordering_key":'::text) || COALESCE((to_json(ordering_key))::text, 'null'::text)) || ',"request":'::text) || outbox.join_pieces(outbox.json_pieces(request), ARRAY['"trace_id"'::text, '"idempotency_key"'::text])) || '}'::text), 'UTF8'::name)), 'hex'::text)) ELSE NULL::text END

CREATE OR REPLACE FUNCTION dlq.search_query(p_text text)
 RETURNS tsquery
 LANGUAGE plpgsql
 IMMUTABLE STRICT
AS $function$
BEGIN
    RETURN (
        SELECT string_agg(
                   CASE WHEN length(word) = 1 AND octet_length(word) > 2 THEN '''' || word || ''':*'
                        ELSE '''' || word || '''' END, ' & ')
        FROM unnest(dlq.search_words(p_text, true)) AS word
    )::tsquery;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.search_vector(p_class text, p_error text, p_payload jsonb, p_raw bytea)
 RETURNS tsvector
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
BEGIN
    RETURN array_to_tsvector(dlq.search_words(
        concat_ws(' ', left(p_class, 1024), left(p_error, 8192), dlq.searched_value(p_payload, p_raw)), false));
END;
$function$

CREATE OR REPLACE FUNCTION dlq.search_words(p_text text, p_is_query boolean)
 RETURNS text[]
 LANGUAGE plpgsql
 IMMUTABLE STRICT
AS $function$
DECLARE
    v_cjk CONSTANT TEXT := '[\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff'
                        || '\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+';
    v_text TEXT := p_text;
    v_pairs TEXT[] := '{}';
BEGIN
    IF octet_length(v_text) > char_length(v_text) THEN
        v_text := normalize(v_text, NFKC);
        IF v_text ~ v_cjk THEN
            v_pairs := ARRAY(
                SELECT substr(run[1], i, 2)
                FROM regexp_matches(v_text, v_cjk, 'g') AS run,
                     generate_series(1, GREATEST(length(run[1]) - CASE WHEN p_is_query THEN 1 ELSE 0 END, 1)) AS i
            );
            v_text := regexp_replace(v_text, v_cjk, ' ', 'g');
        END IF;
    END IF;
    v_text := lower(v_text COLLATE pg_c_utf8);
    v_text := regexp_replace(v_text COLLATE pg_c_utf8, '[^[:alnum:]]+', ' ', 'g');
    RETURN v_pairs || ARRAY(
        SELECT left(word, 60) FROM unnest(string_to_array(v_text, ' ')) AS word WHERE word <> ''
    );
END;
$function$

CREATE OR REPLACE FUNCTION dlq.searched_value(p_payload jsonb, p_raw bytea)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
    v_bytes BYTEA := substring(p_raw FROM 1 FOR 8192);
    v_text TEXT;
BEGIN
    IF p_payload IS NOT NULL
       AND (p_raw IS NULL OR (octet_length(p_raw) <= 65536 AND position('\x5c'::bytea IN v_bytes) > 0))
       AND platform.json_bytes(p_payload) <= 1048576
    THEN
        v_text := left(p_payload::text, 8192);
    ELSE
        v_text := dlq.readable_text(v_bytes);
    END IF;
    IF p_payload IS NOT NULL AND strpos(v_text, '\') > 0 THEN
        v_text := regexp_replace(v_text, '\\(?:u[[:xdigit:]]{4}|.)', ' ', 'g');
    END IF;
    RETURN v_text;
END;
$function$

CREATE OR REPLACE FUNCTION audit.stamp_event()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET "TimeZone" TO 'UTC'
AS $function$
DECLARE
    v_now TIMESTAMPTZ;
BEGIN
    PERFORM pg_current_xact_id();
    NEW.seq := nextval('audit.events_seq');
    v_now := clock_timestamp();
    -- The partition was chosen by the time that the row came with, so at the turn of a month that one stays.
    IF date_trunc('month', NEW.at) = date_trunc('month', v_now) THEN
        NEW.at := v_now;
    ELSIF NEW.at > v_now OR NEW.at < v_now - interval '1 minute' THEN
        RAISE EXCEPTION 'the time of an audit event cannot be chosen' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.kept <> audit.keep_of(NEW.action) THEN
        RAISE EXCEPTION 'how long an audit event is kept cannot be chosen' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $function$

CREATE OR REPLACE FUNCTION saga.start_saga(p_workflow_name text, p_payload jsonb DEFAULT NULL::jsonb, p_correlation_id text DEFAULT NULL::text, p_initiated_by text DEFAULT NULL::text, p_key text DEFAULT NULL::text, p_trace text DEFAULT NULL::text, p_hash text DEFAULT NULL::text, p_created_by text DEFAULT NULL::text, OUT saga_id uuid, OUT outcome text, OUT current_hash text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
#variable_conflict use_column
DECLARE
    v_hash    TEXT;
    v_limit   BIGINT;
    v_digest  TEXT;
    v_payload JSONB;
    v_is_new  BOOLEAN;
    v_timeout TEXT := current_setting('lock_timeout');
    v_flaw    TEXT := CASE
        WHEN p_workflow_name IS NULL OR length(p_workflow_name) NOT BETWEEN 1 AND 255
            THEN 'workflow_name must be a text of 1 to 255 characters'
        WHEN length(p_correlation_id) NOT BETWEEN 1 AND 255
            THEN 'correlation_id must be a text of 1 to 255 characters'
        WHEN length(p_initiated_by) NOT BETWEEN 1 AND 255
            THEN 'initiated_by must be a text of 1 to 255 characters'
        WHEN p_key COLLATE "C" !~ '^[!-~]{1,255}$' THEN 'key must be 1 to 255 visible ASCII characters'
        WHEN p_hash COLLATE "C" !~ '^sha256:[0-9a-f]{64}$' THEN 'hash must be sha256: and 64 hexadecimal digits'
        ELSE 'payload ' || saga.flaw_of_payload(p_payload)
    END;
BEGIN
    IF v_flaw IS NOT NULL THEN
        RAISE EXCEPTION 'saga.start_saga: %', v_flaw USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT w.current_hash, d.hash, (d.definition ->> 'deadline_ms')::bigint INTO current_hash, v_hash, v_limit
    FROM saga.workflows w
    LEFT JOIN saga.workflow_definitions d ON d.hash = COALESCE(p_hash, w.current_hash) AND d.name = w.name
    WHERE w.name = p_workflow_name;
    IF v_hash IS NULL THEN
        outcome := CASE WHEN FOUND THEN 'unregistered' ELSE 'unknown_workflow' END;
        RETURN;
    END IF;
    v_payload := saga.with_plain_numbers(p_payload);
    saga_id := platform.new_id();
    IF p_key IS NOT NULL THEN
        v_digest := encode(sha256(convert_to(
            jsonb_build_array(p_workflow_name, v_payload, p_correlation_id, p_initiated_by)::text, 'UTF8')), 'hex');
        LOOP
            -- Only this wait is bounded here: for all others the caller's own timeout holds.
            BEGIN
                PERFORM set_config('lock_timeout', '500ms', true);
                INSERT INTO saga.saga_start_keys (workflow_name, key, digest, saga_id, expires_at, created_by)
                VALUES (p_workflow_name, p_key, v_digest, saga_id, clock_timestamp() + interval '30 days', p_created_by)
                ON CONFLICT (workflow_name, key) DO NOTHING;
                v_is_new := FOUND;
                PERFORM set_config('lock_timeout', v_timeout, true);
            EXCEPTION WHEN lock_not_available THEN
                saga_id := NULL;
                outcome := 'busy';
                RETURN;
            END;
            EXIT WHEN v_is_new;
            SELECT k.saga_id, CASE WHEN k.digest = v_digest THEN 'replayed' ELSE 'mismatch' END INTO saga_id, outcome
            FROM saga.saga_start_keys k WHERE k.workflow_name = p_workflow_name AND k.key = p_key;
            IF FOUND THEN
                RETURN;
            END IF;
            -- It has just expired: the key is free.
            saga_id := platform.new_id();
        END LOOP;
    END IF;
    INSERT INTO saga.saga_states
        (id, workflow_name, payload, correlation_id, initiated_by, definition_hash, wake_at, deadline_at, created_by,
         trace)
    VALUES (saga_id, p_workflow_name, v_payload, p_correlation_id, p_initiated_by, v_hash, clock_timestamp(),
            clock_timestamp() + v_limit * interval '1 millisecond', p_created_by,
            -- An invalid trace does not refuse the saga. A valid one is stored in the version that everybody reads.
            CASE
                WHEN p_trace COLLATE "C" ~ '^[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[^\n]*)?$'
                     AND p_trace NOT LIKE 'ff-%' AND (length(p_trace) = 55 OR p_trace NOT LIKE '00-%')
                THEN '00-' || substr(p_trace, 4, 50)
                     || CASE WHEN strpos('13579bdf', substr(p_trace, 55, 1)) > 0 THEN '01' ELSE '00' END
            END);
    outcome := 'started';
    PERFORM pg_notify('redrive', 'saga')
    WHERE EXISTS (SELECT 1 FROM platform.idle_workers WHERE channel = 'saga' AND idle_until > clock_timestamp());
END $function$

CREATE OR REPLACE FUNCTION dlq.trace_id_of(p_headers jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
RETURN (SELECT (regexp_match(lower((jsonb_path_query_first(p_headers, '$[*]?(@."key" == "traceparent")."value"'::jsonpath) #>> '{}'::text[])), '^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}'::text))[1] AS regexp_match)

CREATE OR REPLACE FUNCTION dlq.truncate_facets()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    IF TG_TABLE_NAME = 'dlq_messages' THEN
        TRUNCATE dlq.message_facets;
    ELSE
        TRUNCATE dlq.message_facets_archive;
    END IF;
    RETURN NULL;
END;
$function$

CREATE OR REPLACE FUNCTION dlq.update_updated_at()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    NEW.updated_at = NOW();
    RETURN NEW;
END;
$function$

CREATE OR REPLACE FUNCTION saga.update_updated_at()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    NEW.updated_at = NOW();
    RETURN NEW;
END;
$function$

CREATE OR REPLACE FUNCTION outbox.utf16_order(key text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN CASE WHEN (octet_length(key) = length(key)) THEN key ELSE regexp_replace(regexp_replace(key, ('([-￿])'::text COLLATE "C"), '\1'::text, 'g'::text), ('([𐀀-􏿿])'::text COLLATE "C"), '\1'::text, 'g'::text) END

CREATE OR REPLACE FUNCTION saga.with_plain_numbers(p_payload jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    v_text TEXT COLLATE "C" := p_payload::text;
BEGIN
    IF v_text !~ '[.][0-9]*0([^0-9]|$)' THEN
        RETURN p_payload;
    END IF;
    SELECT string_agg(
        CASE
            WHEN n % 2 = 0 THEN part
            ELSE regexp_replace(
                regexp_replace(part, '([.][0-9]*[1-9])0+(?![0-9])', '\1', 'g'), '[.]0+(?![0-9])', '', 'g')
        END, '"' ORDER BY n)
    INTO v_text
    FROM string_to_table(replace(replace(v_text, E'\\\\', E'\x04'), E'\\"', E'\x05'), '"')
         WITH ORDINALITY AS parts (part, n);
    RETURN replace(replace(v_text, E'\x05', E'\\"'), E'\x04', E'\\\\');
END $function$

