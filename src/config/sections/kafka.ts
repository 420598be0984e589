import { hostAndPort } from '../formats/host-format.ts';
import { topicGlob } from '../formats/topic-format.ts';
import { tlsKeys } from '../layers/tls-files.ts';
import {
  MIB,
  duration,
  filePath,
  flag,
  listOf,
  oneOf,
  oneOrMore,
  optional,
  plainName,
  secret,
  section,
  text,
  wholeNumber,
} from '../formats/value.ts';

export const kafka = section({
  enabled: optional(
    flag({
      otherwise: 'true if there are brokers',
      description: '`false`: nothing is read, and retries resolve with `published: false`',
    }),
  ),
  local: flag({
    default: false,
    description:
      'a broker inside the process for trying things out. It keeps the newest 8 MiB of each topic in memory and loses everything when the process ends',
  }),
  brokers: listOf(hostAndPort(), {
    default: [],
    examples: [['kafka-0.example.com:9092']],
    description: 'list of `host:port`',
  }),
  consumer_group: plainName({
    default: 'dlq-manager.default',
    description:
      "reading starts at the offsets of this group, and Redrive's positions are mirrored to it. It must have no members",
  }),
  security_protocol: oneOf(['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'], {
    default: 'PLAINTEXT',
    description: 'how to connect to the brokers',
  }),
  sasl: section({
    mechanism: oneOf(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'], {
      default: 'SCRAM-SHA-512',
      description: 'how to authenticate; only with a SASL protocol',
    }),
    username: optional(
      text({
        secretFile: 'kafka-sasl-username',
        description:
          'user, or the client id for OAUTHBEARER; also read with the password from `kafka-sasl.json`: `{"username": "…", "password": "…"}`',
      }),
    ),
    password: optional(
      secret({
        secretFile: 'kafka-sasl-password',
        description: 'password, or the client secret for OAUTHBEARER',
      }),
    ),
    token_url: optional(
      text({
        what: 'an https:// URL (http:// on loopback)',
        pattern: '^https?://[^/\\\\?#]',
        isValid: (value) => URL.canParse(value) && !/[#@]/.test(value),
        examples: ['https://idp.example.com/realms/main/protocol/openid-connect/token'],
        description:
          'where OAUTHBEARER gets its tokens, by the client credentials grant. A token is used until shortly before its end',
      }),
    ),
    scope: optional(
      text({
        what: 'text',
        pattern: '.',
        examples: ['kafka'],
        description: 'scope of the tokens for OAUTHBEARER',
      }),
    ),
  }),
  tls: section(tlsKeys(filePath)),
  dlq_topic_pattern: oneOrMore(topicGlob(), {
    default: ['*.dlq.v1', '*.dlq'],
    description:
      'one or several patterns for dead-letter topics; `*` matches any characters, and the whole name must match',
  }),
  fetch_max_bytes_in_flight: wholeNumber(MIB, 4096 * MIB, {
    default: 64 * MIB,
    description: 'bytes fetched and not yet stored, per process',
  }),
  discovery_interval: duration('1s', '1h', {
    default: '30s',
    description: 'how often to look for new topics (`redrive dev`: 1 s)',
  }),
  publish_timeout: duration('100ms', '5m', {
    default: '5s',
    description:
      'timeout of one publish; a batch of one partition gets half of what is left of it, at least 5 s',
  }),
});
