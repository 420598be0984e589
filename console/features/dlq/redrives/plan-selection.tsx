import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { FilterBox } from '../../../components/filter/filter-box.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useText } from '../../../components/text/use-text.ts';
import type { MessageFacets } from '../../../lib/server-shapes.ts';
import { FormPart } from '../../../components/form/form-parts.tsx';
import { redriveQualifiers } from './redrive-qualifiers.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';

/** What the plan is about: a filter that can be changed here, or messages that were chosen in a list. */
export function PlanSelection({
  filterText,
  ids,
}: Readonly<{ filterText: string; ids: readonly string[] | null | undefined }>) {
  const t = useText(redrivesTexts);
  return (
    <FormPart legend={t.selection}>
      {ids === undefined ? (
        <FilterSelection filterText={filterText} />
      ) : (
        <p>{ids === null ? t.chosenLost : t.chosenOrAll(ids.length)}</p>
      )}
      <p className={styles['hint']}>{t.selectionHint}</p>
    </FormPart>
  );
}

function FilterSelection({ filterText }: Readonly<{ filterText: string }>) {
  const navigate = useNavigate();
  const api = useApi();
  const { data } = useQuery({
    queryKey: ['dlq', 'facets', ''],
    queryFn: ({ signal }) => api.get<MessageFacets>('/api/v1/dlq/messages/facets', signal),
  });
  return (
    <FilterBox
      hasViews={false}
      value={filterText}
      qualifiers={redriveQualifiers}
      counts={data?.facets ?? {}}
      onApply={(q) => void navigate({ to: '/dlq/redrives/new', search: { q }, replace: true })}
    />
  );
}
