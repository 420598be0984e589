import { secretValue } from '../layers/secret-value.ts';
import { host } from './host-format.ts';
import { oneOf, oneOrMore, optional, text, wholeNumber, type About, type Flaw } from './value.ts';

export const timeoutMs = (about: About = {}) =>
  wholeNumber(1, 600_000, {
    description:
      'timeout of one attempt in milliseconds, from waiting for a connection to the end of the answer',
    ...about,
  });

/** `ops@example.com`, or `Operations <ops@example.com>`. */
const mailAddress = (about: About = {}) =>
  text({
    what: 'a mail address',
    pattern: '^(?:[^<>@",;]*<)?[^\\s<>@",;]+@[^\\s<>@",;]+>?$',
    isValid: (value) => value.includes('<') === value.endsWith('>'),
    ...about,
  });

const reasonAgainstPassword = (value: string): string | undefined =>
  /\p{Cc}/u.test(value) ? 'one line without control characters' : undefined;

/** A mail server and who gets its mails. */
export const mailServer = {
  host: host({ description: 'host name or IP address of the mail server' }),
  port: optional(wholeNumber(1, 65_535, { otherwise: '`587`; implicit: `465`', description: 'port' })),
  security: oneOf(['starttls', 'implicit', 'none'], {
    default: 'starttls',
    description:
      '`starttls`: servers without STARTTLS are refused; `implicit`: TLS from the first byte; `none`: unencrypted',
  }),
  user: optional(
    text({
      what: '1 to 255 characters',
      pattern: '^.{1,255}$',
      description: 'user; both this and `password` or neither',
    }),
  ),
  password: optional(secretValue(reasonAgainstPassword, { description: 'password, or `{ file: /path }`' })),
  from: mailAddress({ description: 'sender: `ops@example.com` or `Operations <ops@example.com>`' }),
  to: oneOrMore(mailAddress(), { description: 'one address or a list' }),
  timeout_ms: timeoutMs({ default: 10_000 }),
};

/** A login is a user and a password. */
export function flawOfLogin(
  { user, password }: Readonly<{ user: string | undefined; password: unknown }>,
  path: string,
): Flaw | undefined {
  if (user !== undefined && password === undefined)
    return { at: '.password', reason: `is missing, but ${path}.user is set` };
  return password !== undefined && user === undefined
    ? { at: '.user', reason: `is missing, but ${path}.password is set` }
    : undefined;
}
