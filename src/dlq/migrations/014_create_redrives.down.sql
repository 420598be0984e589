DROP TABLE dlq.redrive_items;
DROP TABLE dlq.redrives;
