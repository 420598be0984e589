import type { Check } from '../check.ts';

/** The port that goes with the security. */
export const resolvePort = ({
  port,
  security,
}: Readonly<{ port: number | undefined; security: string }>): number =>
  port ?? (security === 'implicit' ? 465 : 587);

export function warnClearPassword(
  path: string,
  { password, security }: Readonly<{ password: unknown; security: string }>,
  { warn }: Check,
): void {
  if (password !== undefined && security === 'none')
    warn(`${path}.password is sent in the clear: ${path}.security is none`);
}
