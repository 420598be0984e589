CREATE ROLE "{{name}}" LOGIN PASSWORD '{{password}}' VALID UNTIL '{{expiration}}' IN ROLE redrive_migrator;
ALTER ROLE "{{name}}" SET role = 'redrive_owner';
