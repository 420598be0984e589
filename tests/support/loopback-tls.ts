/**
 * A certificate that nobody trusts by default, for `localhost` and 127.0.0.1, valid until 2120, and its key. For
 * servers on loopback in tests; it protects nothing.
 */
export const loopbackTls = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHgkbNeWuMzCzfV++
lLxDIBRom7k/7E+TICmCyGa3GdmhRANCAATY0MCDti9uPuWBzhgqYadq7VlToz5f
KVos17F/TeOX2DG369YzZz7Y5aTaCbRJkdy829eNEOU19JJHsTz43fkG
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBZjCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNjQwIO2L24+5YHO
GCphp2rtWVOjPl8pWizXsX9N45fYMbfr1jNnPtjlpNoJtEmR3Lzb140Q5TX0kkex
PPjd+QajTjBMMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0
hwR/AAABMB0GA1UdDgQWBBQ0qYyYDxM1MxM6wKFEGNIbcDf0nTAKBggqhkjOPQQD
AgNHADBEAiA3GhXpe7nHzI9ByPGI71+I2P5wHaKrHaFEW/aLHnoUlAIgXescMtGt
SGwcOtU7+rnJzmQXYN4JcO4McnjQGgJX3uc=
-----END CERTIFICATE-----
`,
} as const;
