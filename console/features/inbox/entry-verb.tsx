import { LinkButton } from '../../components/button/link-button.tsx';
import { useMay } from '../../components/session/use-may.ts';
import { useText } from '../../components/text/use-text.ts';
import type { LocalPlace } from '../../lib/view-address.ts';
import { verbPlace, type Entry } from './inbox-entry.ts';
import { inboxTexts } from './texts/inbox-texts.ts';

type Verb = Readonly<{
  label: string;
  hint: string;
  /** Where it is done; each verb leads to the page on which somebody decides. */
  place: LocalPlace | null;
  /** Why it cannot be used. */
  reason: string | undefined;
}>;

/** What one would most likely do next about an entry. */
function useVerb(entry: Entry): Verb {
  const may = useMay(entry.verb.permission);
  return { ...useVerbWords()(entry), place: verbPlace(entry), reason: may.reason };
}

function useVerbWords(): (entry: Entry) => Pick<Verb, 'label' | 'hint'> {
  const t = useText(inboxTexts);
  return ({ verb: { action } }) => {
    switch (action) {
      case 'plan_redrive':
        return { label: t.planRedrive, hint: t.planRedriveHint };
      case 'route':
        return { label: t.route, hint: t.routeHint };
      case 'requeue':
        return { label: t.requeue, hint: t.requeueHint };
      case 'review':
        return { label: t.review, hint: t.reviewHint };
      case 'ask_status':
        return { label: t.askStatus, hint: t.askStatusHint };
      case 'check_target':
        return { label: t.checkTarget, hint: t.checkTargetHint };
      case 'check_source':
        return { label: t.checkSource, hint: t.checkSourceHint };
      default:
        return { label: t.openVerb, hint: t.openHint };
    }
  };
}

/** The verb as a link. Without the permission it stays visible, with the reason. */
export function EntryVerb({ entry, isPrimary = false }: Readonly<{ entry: Entry; isPrimary?: boolean }>) {
  const { label, hint, place, reason } = useVerb(entry);
  if (place === null) return null;
  return (
    <LinkButton
      {...place}
      kind={isPrimary ? 'primary' : 'plain'}
      hint={hint}
      disabledReason={reason}
      {...(isPrimary ? { keys: 'r' } : {})}
    >
      {label}
    </LinkButton>
  );
}
