ALTER TABLE jobs.queues DROP COLUMN circuit;
