DROP TABLE console.views;
DROP TABLE console.inbox_notes;
DROP TABLE console.inbox_entries;
DROP SCHEMA console;
