-- How far reading could get, and what every offset was met as.
--
-- A reader of committed records stops at the stable end while a transaction is open; the lag counts to the end. The
-- offsets that hold no record are counted by kind, each as it is met:
--   high_offset - first_offset = stored + reopened + folded + control + aborted + gaps + not_records + lost
-- not_records holds what was counted before the kinds were told apart, and no longer grows.
ALTER TABLE dlq.source_partitions
    ADD COLUMN log_stable_end  BIGINT,
    ADD COLUMN held_back_since TIMESTAMPTZ,
    ADD COLUMN denied          BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN control         BIGINT  NOT NULL DEFAULT 0,
    ADD COLUMN aborted         BIGINT  NOT NULL DEFAULT 0,
    ADD COLUMN gaps            BIGINT  NOT NULL DEFAULT 0;
