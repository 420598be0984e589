import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The transit engine of Vault as its HTTP API describes it, with real keys: encrypt, decrypt and rewrap with a key of
 * several versions, `min_decryption_version`, tokens, namespaces, and the errors of a sealed Vault.
 */
export type TransitServer = Readonly<{
  url: string;
  /** The action of each request that was allowed. */
  requests: readonly string[];
  /** Adds a version to the key; new ciphertexts get it. */
  rotate(): void;
  /** Ciphertexts of lower versions cannot be decrypted any more. */
  setMinDecryptionVersion(version: number): void;
  seal(isSealed: boolean): void;
  setToken(token: string): void;
  close(): Promise<void>;
}>;

export type TransitServerOptions = Readonly<{
  key?: string;
  mount?: string;
  token?: string;
  namespace?: string;
  /** How long an answer takes. */
  delayMs?: number;
}>;

type Reply = readonly [status: number, body: object];
const failure = (status: number, ...errors: readonly string[]): Reply => [status, { errors }];

export async function startTransit(options: TransitServerOptions = {}): Promise<TransitServer> {
  const { key = 'redrive', mount = 'transit', namespace, delayMs = 0 } = options;
  const state = { token: options.token ?? 'a-token', isSealed: false };
  const transitKey = createTransitKey();
  const requests: string[] = [];
  const replyTo = async (request: IncomingMessage): Promise<Reply> => {
    if (state.isSealed) return failure(503, 'Vault is sealed');
    const { 'x-vault-token': given, 'x-vault-namespace': asked } = request.headers;
    if (given !== state.token || asked !== namespace) return failure(403, 'permission denied');
    const path = decodeURIComponent(new URL(request.url ?? '', 'http://vault').pathname);
    const [, action, name] = /^\/v1\/.*\/(encrypt|decrypt|rewrap)\/([^/]+)$/.exec(path) ?? [];
    if (action === undefined || !path.startsWith(`/v1/${mount}/`)) return failure(404);
    if (request.method !== 'POST' && request.method !== 'PUT') return failure(405, 'unsupported operation');
    if (name !== key) return failure(400, 'encryption key not found');
    requests.push(action);
    if (delayMs > 0) await sleep(delayMs);
    return transitKey.act(action, JSON.parse(await textOf(request)) as Readonly<Record<string, unknown>>);
  };
  const server = createServer((request, response) => {
    replyTo(request).then(
      ([status, body]) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
      // The caller was killed before its request was read.
      () => response.destroy(),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    rotate: transitKey.rotate,
    setMinDecryptionVersion: transitKey.setMinDecryptionVersion,
    seal: (isSealed) => void (state.isSealed = isSealed),
    setToken: (next) => void (state.token = next),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const nonceBytes = 12;
const tagBytes = 16;

function createTransitKey() {
  const versions: Buffer[] = [randomBytes(32)];
  let minDecryptionVersion = 1;
  const encrypt = (plain: Buffer): object => {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', versions.at(-1) ?? Buffer.alloc(32), nonce);
    const bytes = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    return {
      ciphertext: `vault:v${versions.length}:${bytes.toString('base64')}`,
      key_version: versions.length,
    };
  };
  const decrypt = (ciphertext: unknown): Buffer | Reply => {
    const [, version, base64] = /^vault:v(\d+):(.+)$/.exec(String(ciphertext)) ?? [];
    if (version === undefined || base64 === undefined) return failure(400, 'invalid ciphertext: no prefix');
    const secret = versions[Number(version) - 1];
    if (secret === undefined) return failure(400, 'invalid ciphertext: version is too new');
    if (Number(version) < minDecryptionVersion)
      return failure(400, 'ciphertext or signature version is disallowed by policy (too old)');
    const bytes = Buffer.from(base64, 'base64');
    try {
      const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      });
      decipher.setAuthTag(bytes.subarray(-tagBytes));
      return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]);
    } catch {
      return failure(400, 'cipher: message authentication failed');
    }
  };
  return {
    act(action: string, body: Readonly<Record<string, unknown>>): Reply {
      if (action === 'encrypt') {
        const plaintext = String(body['plaintext']);
        const plain = Buffer.from(plaintext, 'base64');
        if (plain.toString('base64') !== plaintext) return failure(400, 'failed to base64-decode plaintext');
        return [200, { data: encrypt(plain) }];
      }
      const plain = decrypt(body['ciphertext']);
      if (!Buffer.isBuffer(plain)) return plain;
      return [200, { data: action === 'rewrap' ? encrypt(plain) : { plaintext: plain.toString('base64') } }];
    },
    rotate: () => void versions.push(randomBytes(32)),
    setMinDecryptionVersion: (version: number) => void (minDecryptionVersion = version),
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
