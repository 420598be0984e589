import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { codeOf } from '../../kernel/errors.ts';
import { KeyError } from '../../kernel/protect/keyring.ts';
import type { MasterKey } from './master-key.ts';

/**
 * Master keys in a file: a line `name:base64` each, of 32 bytes. The first one wraps, all of them unwrap, so that a key
 * is replaced by writing a new line above it, and removed when `redrive keys rewrap` has been run. The file is read
 * whenever it is needed, which is once per data key and process.
 *
 * A wrapped key is `file:<name>:<base64 of nonce, ciphertext and tag>`.
 */
export function keyFile(path: string): MasterKey {
  return {
    name: `file ${path}`,
    async wrap(secret) {
      return wrapWith(newest(await readKeys(path), path), secret);
    },
    async unwrap(wrapped) {
      return unwrapWith(await readKeys(path), wrapped, path);
    },
    async rewrap(wrapped) {
      const keys = await readKeys(path);
      const first = newest(keys, path);
      if (wrapped.startsWith(`file:${first.name}:`)) {
        unwrapWith(keys, wrapped, path);
        return null;
      }
      return wrapWith(first, unwrapWith(keys, wrapped, path));
    },
  };
}

type Keys = ReadonlyMap<string, Buffer>;
type NamedKey = Readonly<{ name: string; key: Buffer }>;

const linePattern = /^([\w.-]{1,64}):([A-Za-z0-9+/]{43}=)$/;
const nonceBytes = 12;
const tagBytes = 16;
const algorithm = 'aes-256-gcm';

async function readKeys(path: string): Promise<Keys> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new KeyError(`the file with the master keys cannot be read: ${path}: ${codeOf(error) ?? 'error'}`);
  }
  const keys = new Map<string, Buffer>();
  text.split('\n').forEach((line, i) => {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const [, name, key] = linePattern.exec(trimmed) ?? [];
    // Never quotes the line: it may hold a key.
    if (name === undefined || key === undefined)
      throw new KeyError(`line ${i + 1} of ${path} is not "name:base64" with a key of 32 bytes`);
    if (keys.has(name)) throw new KeyError(`line ${i + 1} of ${path} has the name of another key: ${name}`);
    keys.set(name, Buffer.from(key, 'base64'));
  });
  return keys;
}

function newest(keys: Keys, path: string): NamedKey {
  for (const [name, key] of keys) return { name, key };
  throw new KeyError(`there is no key in ${path}`);
}

function wrapWith({ name, key }: NamedKey, secret: Buffer): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce);
  cipher.setAAD(Buffer.from(`redrive data key\0${name}`));
  const bytes = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  return `file:${name}:${bytes.toString('base64')}`;
}

function unwrapWith(keys: Keys, wrapped: string, path: string): Buffer {
  const [, name, base64] = /^file:([\w.-]{1,64}):([A-Za-z0-9+/=]+)$/.exec(wrapped) ?? [];
  if (name === undefined || base64 === undefined)
    throw new KeyError('it was not wrapped by a key file; was protect.encrypt set to Vault before?');
  const key = keys.get(name);
  if (key === undefined) throw new KeyError(`master key ${name} is missing in ${path}`);
  const bytes = Buffer.from(base64, 'base64');
  const nonce = bytes.subarray(0, nonceBytes);
  try {
    const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(`redrive data key\0${name}`));
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]);
  } catch {
    throw new KeyError(`master key ${name} in ${path} is not the one that wrapped it`);
  }
}
