# In addition, what the server may do with the master key of encrypted dead letters (protect.encrypt.vault):
# vault policy write redrive-transit deploy/vault/transit-policy.hcl
path "transit/encrypt/redrive" {
  capabilities = ["update"]
}
path "transit/decrypt/redrive" {
  capabilities = ["update"]
}
path "transit/rewrap/redrive" {
  capabilities = ["update"]
}
