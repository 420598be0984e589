import { createHash } from 'node:crypto';
import { EncryptJWT, jwtDecrypt } from 'jose';

/** What a login needs when the browser comes back from the provider. */
export type LoginState = Readonly<{
  state: string;
  nonce: string;
  verifier: string;
  /** The path to go to, below the path of the public URL. */
  returnTo: string;
  beganAtMs: number;
}>;

export type LoginStateSeal = Readonly<{
  seal(login: LoginState): Promise<string>;
  /** Undefined if it is not ours, or too old. */
  open(sealed: string): Promise<LoginState | undefined>;
}>;

export const loginLifetimeS = 600;
/** Far more than a login with the longest return address takes; a longer text is not ours. */
const maxSealedLength = 8192;

/**
 * Seals by AES-256-GCM, so that the browser can neither read nor change it. `keys` is read each time: the first one seals,
 * all of them open, so that a login that began before a rotation ends after it.
 */
export function createLoginStateSeal(
  keys: () => readonly string[],
  nowMs: () => number = Date.now,
): LoginStateSeal {
  return {
    async seal(login) {
      const beganAtS = Math.floor(login.beganAtMs / 1000);
      const [key = ''] = keys();
      return new EncryptJWT({ ...login })
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: keyId(key) })

        .setIssuedAt(beganAtS)
        .setExpirationTime(beganAtS + loginLifetimeS)
        .encrypt(bytesOf(key));
    },
    async open(sealed) {
      if (sealed.length > maxSealedLength) return undefined;
      try {
        const { payload } = await jwtDecrypt(sealed, ({ kid }) => keyNamed(keys(), kid), {
          keyManagementAlgorithms: ['dir'],
          contentEncryptionAlgorithms: ['A256GCM'],
          currentDate: new Date(nowMs()),
        });
        return readState(payload);
      } catch {
        return undefined;
      }
    },
  };
}

function keyNamed(keys: readonly string[], kid: string | undefined): Uint8Array {
  const key = keys.find((each) => keyId(each) === kid);
  if (key === undefined) throw new Error('sealed with another key');
  return bytesOf(key);
}

/** Keys are texts of any length; the cipher takes 256 bits. */
function bytesOf(key: string): Uint8Array {
  return createHash('sha256').update(`redrive login state\0${key}`).digest();
}

function keyId(key: string): string {
  return createHash('sha256').update(`redrive key id\0${key}`).digest('hex').slice(0, 16);
}

function readState(payload: Readonly<Record<string, unknown>>): LoginState | undefined {
  const { state, nonce, verifier, returnTo, beganAtMs } = payload;
  if (typeof state !== 'string' || typeof nonce !== 'string' || typeof verifier !== 'string')
    return undefined;
  if (typeof returnTo !== 'string' || typeof beganAtMs !== 'number') return undefined;
  return { state, nonce, verifier, returnTo, beganAtMs };
}
