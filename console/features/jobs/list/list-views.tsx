import { useSearch } from '@tanstack/react-router';
import { TabLinks } from '../../../components/tabs/tab-links.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { listTexts } from './texts/list-texts.ts';

/** All jobs, or what is dead by its causes. */
export function ListViews() {
  const t = useText(listTexts);
  const { view } = useSearch({ strict: false });
  return (
    <TabLinks
      label={t.views}
      tabs={[
        { to: '/jobs/list', label: t.allJobs, isCurrent: view !== 'dead' },
        { to: '/jobs/list', search: { view: 'dead' }, label: t.deadByError, isCurrent: view === 'dead' },
      ]}
    />
  );
}
