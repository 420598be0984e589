import { Link } from '@tanstack/react-router';
import { useText } from '../../../components/text/use-text.ts';
import { parseFilter, printFilter, type Term } from '../../../lib/filter/filter.ts';
import type { Workflow } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { workflowsTexts } from './texts/workflows-texts.ts';

type Props = Readonly<{
  use: Pick<Workflow, 'unfinished' | 'needs_attention' | 'counts_are_minimum'>;
  of: 'unfinished' | 'stuck';
  /** Whose sagas they are. */
  filter: Term;
}>;

/** How many sagas there are, with the way to their list. */
export function UseCount({ use, of, filter }: Props) {
  const t = useText(workflowsTexts);
  const count = of === 'stuck' ? use.needs_attention : use.unfinished;
  if (count === 0) return '0';
  const text = use.counts_are_minimum === true ? t.atLeast(count) : formatCount(count);
  const term = of === 'stuck' ? 'is:stuck' : 'status:STARTED,RUNNING,COMPENSATING';
  return (
    <Link to="/sagas" search={{ q: printFilter([filter, ...parseFilter(term)]) }}>
      {text}
    </Link>
  );
}
