import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { formatCount } from '../../../lib/sizes.ts';
import type { StatusRole } from '../../../lib/status/status-roles.ts';
import type { Source } from './sources-of.ts';
import { topicsTexts } from './texts/topics-texts.ts';

const roles: Readonly<Record<Source['state'], StatusRole>> = {
  reading: 'done',
  waiting: 'retry',
  stopped: 'attention',
  gone: 'ended',
};

/** `waiting` means something else for redrives. */
export function SourceState({ state }: Readonly<{ state: Source['state'] }>) {
  return <StatusBadge status={state} role={roles[state]} />;
}

/** Whether every record that was read is accounted for. */
export function Balance({ is }: Readonly<{ is: boolean | null }>) {
  const t = useText(topicsTexts);
  if (is === null) return <span>{t.notKnown}</span>;
  return <StatusBadge status={is ? t.balanced : t.mismatch} role={is ? 'done' : 'attention'} />;
}

export function lagText(lag: number | null, unknown: string): string {
  return lag === null ? unknown : formatCount(lag);
}
