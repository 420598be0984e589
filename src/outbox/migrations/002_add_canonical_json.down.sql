DROP FUNCTION outbox.add_order(JSON, TEXT, TEXT, TEXT, TEXT);
DROP FUNCTION outbox.request_digest(TEXT, TEXT, JSON);
DROP FUNCTION outbox.canonical_json(JSON);
DROP FUNCTION outbox.join_pieces(TEXT[], TEXT[]);
DROP FUNCTION outbox.json_pieces(JSON);
DROP FUNCTION outbox.canonical_string(TEXT);
DROP FUNCTION outbox.canonical_number(TEXT);
DROP FUNCTION outbox.is_shortest(TEXT, INT);
DROP FUNCTION outbox.utf16_order(TEXT);
