import { useText } from '../../../components/text/use-text.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { countIds, printRedriveFilter } from './redrive-filter.ts';
import { redrivesTexts } from './texts/redrives-texts.ts';

/** What a redrive is about: its filter, and how many messages were chosen by hand. */
export function SelectionText({ filter }: Readonly<{ filter: Redrive['filter'] }>) {
  const t = useText(redrivesTexts);
  const [ids, text] = [countIds(filter), printRedriveFilter(filter)];
  return (
    <>
      {text === '' ? null : <code>{text} </code>}
      {text === '' || ids > 0 ? t.chosenOrAll(ids) : null}
    </>
  );
}
