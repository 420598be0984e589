import { errors, jwtVerify, type JWTPayload } from 'jose';
import { AppError, messageOf } from '../../kernel/errors.ts';
import { claimAt, textsOf } from './claim-path.ts';
import { IssuerUnavailable, type IssuerKeys } from './issuer-keys.ts';

export type TokenRules = Readonly<{
  issuer: string;
  audience: string;
  rolesClaim: string;
  nameClaim: string;
  /** The type that the header must name; null: any. */
  requiredType: string | null;
}>;

/** What a genuine token says. */
export type TokenClaims = Readonly<{
  type: 'user' | 'service';
  /** `<issuer>|<subject>`. */
  id: string;
  name: string;
  /** As the issuer names them. */
  roles: readonly string[];
  issuedAtMs: number;
}>;

/** Of asymmetric signatures only: nobody can sign with what the issuer publishes. */
export const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/** How far clocks may differ. */
export const toleranceSeconds = 30;
/** Actors are stored with up to 255 characters; a longer one could not be told from another. */
const maxIdLength = 250;
const maxNameLength = 255;
const maxRoles = 1000;

/** Throws an AppError: 401 if the token is not valid, 503 if that cannot be found out now. */
export async function verifyToken(
  { keyFor }: Pick<IssuerKeys, 'keyFor'>,
  rules: TokenRules,
  token: string,
): Promise<TokenClaims> {
  const { issuer, audience, requiredType } = rules;
  try {
    const { payload } = await jwtVerify(token, keyFor, {
      issuer,
      audience,
      algorithms,
      clockTolerance: toleranceSeconds,
      requiredClaims: ['exp', 'sub'],
      ...(requiredType === null ? {} : { typ: requiredType }),
    });
    if (isIdToken(payload)) throw invalid('this is an ID token; send an access token');
    return claimsOf(payload, rules);
  } catch (error) {
    throw faultOf(error);
  }
}

/** Meant for the client that asked for it, not for an API. */
function isIdToken(payload: JWTPayload): boolean {
  return ['nonce', 'at_hash', 'c_hash'].some((claim) => claim in payload) || payload['typ'] === 'ID';
}

/** Throws an AppError if the subject cannot be an identity. */
export function claimsOf(
  payload: JWTPayload,
  { issuer, rolesClaim, nameClaim }: Pick<TokenRules, 'issuer' | 'rolesClaim' | 'nameClaim'>,
): TokenClaims {
  const { sub } = payload;
  if (typeof sub !== 'string' || sub === '') throw invalid('its subject is not a text');
  const id = `${issuer}|${sub}`;
  if (id.length > maxIdLength || /\p{Cc}/u.test(id))
    throw invalid(`its subject and issuer take more than ${maxIdLength} plain characters`);
  const [name = sub] = textsOf(claimAt(payload, nameClaim));
  const isService = payload['client_id'] === sub || payload['azp'] === sub;
  return {
    type: isService ? 'service' : 'user',
    id,
    name: name.slice(0, maxNameLength),
    roles: textsOf(claimAt(payload, rolesClaim)).slice(0, maxRoles),
    issuedAtMs: (payload.iat ?? 0) * 1000,
  };
}

function faultOf(error: unknown): unknown {
  if (error instanceof AppError) return error;
  if (error instanceof IssuerUnavailable)
    return new AppError(
      'SYS_AUTH_ISSUER_UNAVAILABLE',
      'unavailable',
      'the issuer of the token is unavailable',
      {
        cause: error,
        retryAfterMs: 2000,
      },
    );
  if (error instanceof errors.JWTExpired)
    return new AppError('SYS_AUTH_TOKEN_EXPIRED', 'unauthenticated', 'the token has expired', {
      cause: error,
    });
  return error instanceof errors.JOSEError ? invalid(messageOf(error), error) : error;
}

function invalid(reason: string, cause?: unknown): AppError {
  return new AppError('SYS_AUTH_TOKEN_INVALID', 'unauthenticated', `the token is not valid: ${reason}`, {
    cause,
  });
}
