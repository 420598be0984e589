import { useNavigate } from '@tanstack/react-router';
import { copyText } from '../../../components/button/copy-text.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useRefusal } from '../../../components/session/use-may.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { printSearchParams } from '../../../lib/search-params.ts';
import { entryPlace, verbPlace, type Entry } from '../inbox-entry.ts';

/** The keys of a row of the inbox. What they may not do they say. */
export function useRowKeys(): Readonly<Record<string, (entry: Entry) => void>> {
  const api = useApi();
  const toast = useToast();
  const navigate = useNavigate();
  const refusalOf = useRefusal();
  return {
    r(entry) {
      const refusal = refusalOf(entry.verb.permission);
      const place = verbPlace(entry);
      if (refusal !== undefined) toast({ text: refusal, isFailure: true });
      else if (place !== null) void navigate(place);
    },
    y: ({ id }) => void copyText(id),
    Y(entry) {
      const { to, search } = entryPlace(entry);
      void copyText(location.origin + api.url(to + printSearchParams(search)));
    },
  };
}
