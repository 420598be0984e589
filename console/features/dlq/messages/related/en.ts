import type { Texts } from '../../../../lib/text/catalogue.ts';

export const en = {
  sameKey: 'Same key',
  sameTrace: 'Same trace',
  noKey: 'The message has no key, or none that is text.',
  noTrace: 'The message has no traceparent header that can be shown.',
  traceHidden: 'Its headers can be seen only with the permission dlq:payloads:view.',
  newer: (count: number) =>
    count === 1
      ? '1 newer message with this key has failed as well.'
      : `${count} newer messages with this key have failed as well.`,
  noNewer: 'No newer message of this topic with this key has failed.',
  showAll: 'Show all with this key',
  nothing: 'Nothing else was found.',
  unavailable: (slices: string) => `These could not be searched: ${slices}`,
  item: 'Item',
  status: 'Status',
  where: 'Where',
  when: 'When',
  message: 'message',
  redrive: 'redrive',
  order: 'order',
  job: 'job',
  saga: 'saga',
} as const satisfies Texts;
