import { callRedrive, sendToRedrive, until, type OperatorOptions } from './call-redrive.ts';

type Group = Readonly<{ title: string; fingerprint: string }>;
type Message = Readonly<{ id: string }>;

/**
 * An operator who corrects a message: an old till wrote an order in Shift_JIS, so no retry can help. The new version is
 * UTF-8, with what the till left out; it is checked, saved and retried, and the order is shipped. Once is enough, also
 * if an earlier run has done it.
 */
export async function correctOrder(options: OperatorOptions): Promise<void> {
  await until(options.signal, async () => {
    const { messages: edited } = await list(options, 'has_edit=true');
    if (edited.length > 0) return true;
    const message = await findShiftJis(options);
    return message !== null && (await correct(options, message)) ? true : null;
  });
}

function list(options: OperatorOptions, query: string): Promise<Readonly<{ messages: readonly Message[] }>> {
  return callRedrive(options, `/messages?${query}&fields=status`);
}

async function findShiftJis(options: OperatorOptions): Promise<Message | null> {
  const path = '/groups?topic=orders.v1&status=PENDING&page_size=100';
  const { groups } = await callRedrive<Readonly<{ groups: readonly Group[] }>>(options, path);
  const group = groups.find(({ title }) => title.includes('not valid for encoding'));
  if (group === undefined) return null;
  const { messages } = await list(options, `status=PENDING&fingerprint=${group.fingerprint}`);
  return messages[0] ?? null;
}

/** False if somebody else has changed the message meanwhile. */
async function correct(options: OperatorOptions, { id }: Message): Promise<boolean> {
  const path = `/messages/${id}`;
  const ifMatch = (await sendToRedrive(options, path)).headers.get('etag') ?? '';
  const bytes = await (await sendToRedrive(options, `${path}/value`)).arrayBuffer();
  const body = {
    value: JSON.stringify(completed(new TextDecoder('shift_jis').decode(bytes), id)),
    reason: 'the till wrote Shift_JIS',
  };
  const checked = await sendToRedrive(options, `${path}/validate`, { body, ifMatch });
  const { valid } = (await checked.json()) as Readonly<{ valid?: boolean }>;
  if (valid !== true) return false;
  const edited = await sendToRedrive(options, `${path}/edit`, { body, ifMatch });
  return edited.ok && (await sendToRedrive(options, `${path}/retry`, { body: {} })).ok;
}

/** With what the receipt on paper says. */
function completed(text: string, id: string): object {
  const { product } = JSON.parse(text) as Readonly<{ product: string }>;
  return {
    order_id: `till-${id.slice(0, 8)}`,
    customer: 'customer-1',
    product,
    category: 'parcel',
    quantity: 1,
    amount_eur: 14,
    warehouse: 'rotterdam',
  };
}
