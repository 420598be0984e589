/** The parts of a connection that a URL names; the others are undefined. */
export type DatabaseUrl = Readonly<{
  host: string;
  port: number;
  name: string | undefined;
  user: string | undefined;
  password: string | undefined;
  sslMode: string | undefined;
  sslRootCert: string | undefined;
  /** It has parameters that are not used here. Their names are not told: a mistyped password can look like one. */
  hasOtherParameters: boolean;
}>;

const PARAMETERS = ['host', 'port', 'user', 'password', 'dbname', 'sslmode', 'sslrootcert'] as const;

const SHAPE = 'must be postgres://user:password@host:port/name, with special characters percent-encoded';

type Parsed = Readonly<{ ok: true; value: DatabaseUrl } | { ok: false; reason: string }>;

const reject = (reason: string): Parsed => ({ ok: false, reason });

/** A URL as libpq reads it, for one host. Reasons repeat nothing of the URL. */
export function parseDatabaseUrl(text: string): Parsed {
  const url = URL.parse(text);
  if (!url || !['postgres:', 'postgresql:'].includes(url.protocol)) return reject(SHAPE);
  const { searchParams: parameters } = url;
  const parameter = (key: (typeof PARAMETERS)[number]): string | undefined =>
    parameters.get(key) || undefined;
  const path = decode(url.pathname.slice(1));
  const host = parameter('host') ?? decode(url.hostname)?.replace(/^\[(.*)\]$/, '$1');
  const user = parameter('user') ?? decode(url.username);
  const password = parameter('password') ?? decode(url.password);
  // A `#`, `/` or `?` that was not encoded cuts the URL short: what follows would be taken for something else.
  const isCutShort = url.hash !== '' || url.pathname.includes('/', 1) || /[@:]/.test(url.pathname);
  if (path === undefined || host === undefined || user === undefined || password === undefined || isCutShort)
    return reject(SHAPE);
  if (host === '') return reject('names no host');
  if (host.includes(',')) return reject('names several hosts; only one can be used');
  const port = Number(parameter('port') ?? (url.port || 5432));
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return reject(SHAPE);
  return {
    ok: true,
    value: {
      host,
      port,
      name: (parameter('dbname') ?? path) || undefined,
      user: user || undefined,
      password: password || undefined,
      sslMode: parameter('sslmode'),
      sslRootCert: parameter('sslrootcert'),
      hasOtherParameters: [...parameters.keys()].some((key) => !PARAMETERS.some((known) => known === key)),
    },
  };
}

/** Undefined where a percent sign begins no escape. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
