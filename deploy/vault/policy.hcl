# What the server may read: vault policy write redrive deploy/vault/policy.hcl
path "secret/data/k1s0/system/dlq-manager/database" {
  capabilities = ["read"]
}
path "secret/data/k1s0/system/saga/database" {
  capabilities = ["read"]
}
path "secret/data/k1s0/system/kafka/sasl" {
  capabilities = ["read"]
}
# Logins of the console.
path "secret/data/k1s0/system/dlq-manager/console" {
  capabilities = ["read"]
}
path "database/creds/dlq-manager-rw" {
  capabilities = ["read"]
}
path "database/creds/dlq-manager-ro" {
  capabilities = ["read"]
}
path "database/creds/system-saga-rw" {
  capabilities = ["read"]
}
path "database/creds/system-saga-ro" {
  capabilities = ["read"]
}
