import { useText } from '../text/use-text.ts';
import { useSession } from './session.tsx';
import { sessionTexts } from './texts/session-texts.ts';

export type May = Readonly<{
  isAllowed: boolean;
  /** For the `disabledReason` of a button; undefined if it is allowed. */
  reason: string | undefined;
}>;

/**
 * Whether the user has a permission at all. A role narrowed to topics or queues may still not cover one item: the
 * server decides, and answers 403 or 404.
 */
export function useMay(permission: string): May {
  const reason = useRefusal()(permission);
  return { isAllowed: reason === undefined, reason };
}

/** Why a permission is missing; undefined for one that the user has. For those that differ from row to row. */
export function useRefusal(): (permission: string) => string | undefined {
  const { me } = useSession();
  const t = useText(sessionTexts);
  return (permission) =>
    me.permissions.includes(permission) ? undefined : t.needsPermission(permission, me.roles.join(', '));
}
