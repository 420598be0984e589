DROP TRIGGER seals_are_chained ON audit.seals;
DROP FUNCTION audit.chain_seal();
ALTER TABLE audit.seals DROP COLUMN rows_sha256;
