import { Type, type StaticDecode } from 'typebox';

import { headers } from '../formats/header-format.ts';
import { callUrl, host } from '../formats/host-format.ts';
import { chosenName, mapOf } from '../formats/named-map.ts';
import { flag, optional, wholeNumber, withRule, type About } from '../formats/value.ts';
import type { InCode } from '../in-code.ts';
import { readableFile, tlsFiles, urlTlsFiles } from '../layers/tls-files.ts';

/** What both kinds of services have. */
const common = {
  headers: headers({ description: 'sent with every call (gRPC: metadata); a value may be `{ file: … }`' }),
  max_in_flight: optional(
    wholeNumber(1, 100_000, {
      otherwise: 'half of `saga.max_concurrent`',
      description:
        'parallel calls to this service per process, so that a hanging service does not block the others',
    }),
  ),
  idempotent: flag({
    default: true,
    description:
      '`false`: never repeat a call whose outcome is unknown; the saga then needs attention. A 202 counts as done unless the step has a `poll`',
  }),
};

const http = Type.Object({
  type: Type.Literal('http'),
  base_url: callUrl({ description: 'prefix of the paths of steps' }),
  ...common,
  tls: urlTlsFiles(),
});

const grpc = withRule(
  Type.Object({
    type: Type.Literal('grpc'),
    host: host({ description: 'host name or IP address' }),
    port: wholeNumber(1, 65_535, { description: 'port' }),
    proto: optional(
      readableFile({
        description: 'a .proto file or a folder of them; either this or `reflection`',
      }),
    ),
    reflection: flag({ default: false, description: '`true` reads the methods by server reflection' }),
    ...common,
    tls: optional(tlsFiles({ description: 'an empty `tls: {}` enables TLS' })),
  }),
  ({ proto, reflection }) => {
    if (proto === undefined && !reflection) return 'must have either proto or reflection: true';
    return proto !== undefined && reflection ? 'must not have both proto and reflection' : undefined;
  },
);

const service = Type.Union([http, grpc]);

export type ServiceValues = InCode<StaticDecode<typeof service>>;

export const services = (about: About) =>
  mapOf(chosenName('services'), service, {
    default: {},
    examples: [
      {
        payment: {
          type: 'http',
          base_url: 'https://payment.example.com/v1',
          headers: { Authorization: { file: '/vault/secrets/payment-token' } },
          max_in_flight: 20,
        },
        inventory: {
          type: 'grpc',
          host: 'inventory.example.com',
          port: 50_051,
          proto: 'protos/inventory.proto',
        },
        shipping: { type: 'grpc', host: 'shipping.example.com', port: 50_051, reflection: true, tls: {} },
      },
    ],
    ...about,
  });
