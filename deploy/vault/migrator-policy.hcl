# What the migration job may read, and the server may not: vault policy write redrive-migrator deploy/vault/migrator-policy.hcl
path "database/creds/redrive-migrator" {
  capabilities = ["read"]
}
