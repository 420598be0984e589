import type { Operations } from '../../../lib/server-shapes.ts';
import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from '../texts/en.ts';

type Accounting = Operations['getAccounting']['answer'];
type Words = Pick<
  TextsLike<typeof en>,
  'readNothing' | 'readRecords' | 'accountingComplete' | 'accountingOpen' | 'behind' | 'behindUnknown'
>;

/** How much was read from Kafka, whether all of it is accounted for, and whether reading is up to date. */
export function describeAccounting(
  {
    balanced,
    partitions,
  }: Readonly<{
    balanced: Accounting['balanced'];
    partitions: readonly Pick<Accounting['partitions'][number], 'passed' | 'lag'>[];
  }>,
  t: Words,
): string {
  if (partitions.length === 0) return t.readNothing;
  const read = partitions.reduce((sum, { passed }) => sum + passed, 0);
  const unknown = partitions.filter(({ lag }) => lag === null).length;
  const lag = partitions.reduce((sum, one) => sum + (one.lag ?? 0), 0);
  return [
    t.readRecords(read, partitions.length),
    balanced ? t.accountingComplete : t.accountingOpen,
    unknown > 0 ? t.behindUnknown(unknown) : t.behind(lag),
  ].join(' ');
}
