-- The hash of a block's rows, apart from the hash of the block: after a month was dropped, the blocks that are left can
-- still be checked completely. Nothing was sealed before.
ALTER TABLE audit.seals ADD COLUMN rows_sha256 BYTEA NOT NULL CHECK (octet_length(rows_sha256) = 32);

-- Blocks are added one after the other, each with the hash of the one before: of two sealers that begin at the same
-- block, the second one fails. The numbers of the rows of a round are sealed once.
CREATE FUNCTION audit.chain_seal() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
END $$;
CREATE TRIGGER seals_are_chained BEFORE INSERT ON audit.seals FOR EACH ROW EXECUTE FUNCTION audit.chain_seal();
