CREATE ROLE "{{name}}" LOGIN PASSWORD '{{password}}' VALID UNTIL '{{expiration}}' IN ROLE redrive_ro;
ALTER ROLE "{{name}}" SET default_transaction_read_only = on;
