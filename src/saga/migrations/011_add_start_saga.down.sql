DROP FUNCTION saga.start_saga(TEXT, JSONB, TEXT, TEXT, TEXT, TEXT);
DROP FUNCTION saga.with_plain_numbers(JSONB);
DROP FUNCTION saga.flaw_of_payload(JSONB);
DROP FUNCTION saga.is_exact_number(NUMERIC);
