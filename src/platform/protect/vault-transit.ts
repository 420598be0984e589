import { readFile } from 'node:fs/promises';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import { KeyError } from '../../kernel/protect/keyring.ts';
import type { MasterKey } from './master-key.ts';

/** Vault's transit engine, whose key never leaves Vault. */
export type TransitOptions = Readonly<{
  address: string;
  mount: string;
  key: string;
  /** Read for every request: an agent renews the token. */
  tokenFile: string;
  namespace: string | undefined;
  timeoutMs?: number;
}>;

const maxAnswerChars = 65_536;
/** Messages are stored and shown only after the answer. */
const usualTimeoutMs = 5000;

/**
 * A wrapped key is what Vault calls the ciphertext: `vault:v3:…`, with the version of the key. After a rotation in Vault,
 * `rewrap` has Vault replace it by one of the newest version; the data key does not leave Vault for that.
 */
export function vaultTransit(options: TransitOptions): MasterKey {
  const ask = (action: string, body: object, field: string): Promise<string> =>
    request(options, { action, body, field });
  return {
    name: `Vault ${options.address}, ${options.mount}/${options.key}`,
    wrap: (secret) => ask('encrypt', { plaintext: secret.toString('base64') }, 'ciphertext'),
    async unwrap(wrapped) {
      return Buffer.from(await ask('decrypt', { ciphertext: requireOurs(wrapped) }, 'plaintext'), 'base64');
    },
    async rewrap(wrapped) {
      const renewed = await ask('rewrap', { ciphertext: requireOurs(wrapped) }, 'ciphertext');
      return versionOf(renewed) === versionOf(wrapped) ? null : renewed;
    },
  };
}

function requireOurs(wrapped: string): string {
  if (!wrapped.startsWith('vault:'))
    throw new KeyError('it was not wrapped by Vault; was protect.encrypt set to a key file before?');
  return wrapped;
}

function versionOf(wrapped: string): string | undefined {
  return /^vault:(v\d+):/.exec(wrapped)?.[1];
}

type Request = Readonly<{ action: string; body: object; field: string }>;
type Answer = Readonly<{ data?: Readonly<Record<string, unknown>>; errors?: readonly unknown[] }>;

async function request(options: TransitOptions, { action, body, field }: Request): Promise<string> {
  const { address, mount, key, namespace, timeoutMs = usualTimeoutMs } = options;
  const token = await readToken(options.tokenFile);
  const path = [...mount.split('/'), action, key].map(encodeURIComponent).join('/');
  let status: number;
  let answer: Answer | null;
  try {
    const response = await fetch(`${address.replace(/\/+$/, '')}/v1/${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-vault-token': token,
        'x-vault-request': 'true',
        ...(namespace === undefined ? {} : { 'x-vault-namespace': namespace }),
      },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    status = response.status;
    answer = parse(await response.text());
  } catch (error) {
    throw new KeyError(`Vault did not answer: ${messageOf(error)}`, { cause: error });
  }
  const value = answer?.data?.[field];
  if (status === 200 && typeof value === 'string') return value;
  const said = (answer?.errors ?? []).filter((one) => typeof one === 'string').join('; ');
  throw new KeyError(
    `Vault refused to ${action} with ${mount}/${key}: status ${status} ${said.slice(0, 200)}`.trim(),
  );
}

async function readToken(file: string): Promise<string> {
  let token: string;
  try {
    token = (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new KeyError(`the file with Vault's token cannot be read: ${file}: ${codeOf(error) ?? 'error'}`);
  }
  // Anything else would break the header, and an error would quote it.
  if (!/^[\x21-\x7e]{1,4096}$/.test(token)) throw new KeyError(`there is no token in ${file}`);
  return token;
}

function parse(text: string): Answer | null {
  if (text.length > maxAnswerChars) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : null;
  } catch {
    return null;
  }
}
