import { callUrl } from './destination-formats.ts';
import { filePath, flag, refine, wholeNumber, type Format } from './format.ts';
import { headers } from './header-format.ts';
import { host } from './host-format.ts';
import { chosenName, mapOf, shapeOf, variantsOf, type ValueOf } from './map-format.ts';
import { optional, withDefault } from '../setting.ts';

const tls = (): Format<
  Readonly<{ ca: string | undefined; cert: string | undefined; key: string | undefined }>
> => shapeOf({ ca: optional(filePath()), cert: optional(filePath()), key: optional(filePath()) });

/** What both kinds of services have. */
const common = {
  /** How many calls to it this process has under way at once; without a value half of saga.max_concurrent. */
  max_in_flight: optional(wholeNumber(1, 100_000)),
  /** Whether a call may be made again after one whose end is not known. */
  idempotent: withDefault(flag(), true),
  headers: withDefault(headers(), {}),
};

const service = variantsOf('type', {
  http: { ...common, base_url: callUrl(), tls: withDefault(tls(), {}) },
  grpc: {
    ...common,
    host: host(),
    port: wholeNumber(1, 65_535),
    /** A .proto file, or a folder of them. */
    proto: optional(filePath()),
    reflection: withDefault(flag(), false),
    /** Its presence, even as an empty map, means TLS. */
    tls: optional(tls()),
  },
});

export type ServiceValues = ValueOf<typeof service>;

export const services = (): Format<Readonly<Record<string, ServiceValues>>> =>
  mapOf(
    chosenName('services'),
    refine(service, (value) => {
      if (value.type === 'http') return undefined;
      if (value.proto === undefined && !value.reflection) return 'must have either proto or reflection: true';
      return value.proto !== undefined && value.reflection
        ? 'must not have both proto and reflection'
        : undefined;
    }),
  );
