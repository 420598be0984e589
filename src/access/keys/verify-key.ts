import { timingSafeEqual } from 'node:crypto';
import { intersect, type Principal } from '../../kernel/access/principal.ts';
import type { Policy } from '../../kernel/access/roles.ts';
import { AppError } from '../../kernel/errors.ts';
import { subjectsOf } from '../authenticate.ts';
import { readKey } from './key-format.ts';
import type { CheckedKey } from './keys-table.ts';

export type VerifyKeyDeps = Readonly<{
  policy: Policy;
  findKey: (id: string) => Promise<CheckedKey | null>;
  onUse: (id: string) => void;
}>;

/** An unknown key takes as long as one with a wrong secret. */
const noSecret = Buffer.alloc(32);

/** Whose key it is. Throws an AppError if it is unknown, wrong, revoked or expired. */
export async function verifyKey({ policy, findKey, onUse }: VerifyKeyDeps, text: string): Promise<Principal> {
  const given = readKey(text);
  if (given === undefined) throw invalid('unknown');
  const key = await findKey(given.id);
  const isRight = timingSafeEqual(given.secretSha256, key?.secretSha256 ?? noSecret);
  if (key === null || !isRight) throw invalid('unknown');
  if (key.isRevoked) throw invalid('revoked');
  if (key.isExpired)
    throw new AppError('SYS_AUTH_TOKEN_EXPIRED', 'unauthenticated', 'the API key has expired');
  onUse(key.id);
  return principalOfKey(key, policy);
}

/** May do what its role and the bindings of the key give, as far as its maker may do it now. */
export function principalOfKey(
  { id, name, role, scope, maker, makerRoles }: CheckedKey,
  policy: Policy,
): Principal {
  const given = policy
    .grantsOfRole(role)
    .map((grant) => (scope === null ? grant : { ...grant, scopes: [...grant.scopes, scope] }));
  const bound = policy.grantsFor(new Set([`key:${id}`]));
  const grants = intersect([...given, ...bound], policy.grantsFor(subjectsOf(maker, makerRoles)));
  return { type: 'api_key', id, name, roles: [...new Set(grants.map((grant) => grant.role))], grants };
}

function invalid(why: string): AppError {
  return new AppError('SYS_AUTH_TOKEN_INVALID', 'unauthenticated', `the API key is ${why}`);
}
