import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ApiClient } from './api-client.ts';
import { eventually } from './eventually.ts';

/** A redrive as the REST API shows it; the fields that tests look at. */
export type RedriveView = Readonly<{
  id: string;
  state: string;
  state_reason: string | null;
  stage: number | null;
  watch_until: string | null;
  waiting_for: string | null;
  owner: string | null;
  eta_seconds: number | null;
  came_back_after: number;
  counts: Readonly<Record<string, number>>;
  excluded: readonly Readonly<{ reason: string; count: number; sample_ids: readonly string[] }>[];
  targets: readonly Readonly<{ topic: string; count: number; groups: readonly string[] }>[];
  receipt: Readonly<{ sha256: string; counts: Readonly<Record<string, number>> }> | null;
}>;

export type ItemView = Readonly<{
  position: number;
  message_id: string;
  target: string;
  outcome: string;
  attempt: number | null;
  partition: number | null;
  offset: number | null;
  reason: string | null;
}>;

const root = '/api/v1/dlq/redrives';

export type NewRedrive = Readonly<{
  kind?: 'retry' | 'reopen' | 'dead' | 'delete';
  filter?: object;
  rate_per_second?: number | null;
  order?: 'key' | 'none';
  reopen?: boolean;
  canary?: Readonly<{ stages?: readonly number[]; watch_seconds?: number; stop_percent?: number }> | null;
}>;

/** Creates a redrive, and waits for its plan. */
export async function planRedrive(api: ApiClient, redrive: NewRedrive = {}): Promise<RedriveView> {
  const body = { filter: {}, reason: 'the consumer was fixed', ...redrive };
  const { status, body: created } = await api.post<Readonly<{ id: string }>>(root, body);
  assert.equal(status, 202);
  return redriveInState(api, created.id, 'planned');
}

export async function showRedrive(api: ApiClient, id: string): Promise<RedriveView> {
  return (await api.get<RedriveView>(`${root}/${id}`)).body;
}

export async function redriveInState(api: ApiClient, id: string, state: string): Promise<RedriveView> {
  return eventually(async () => {
    const redrive = await showRedrive(api, id);
    assert.equal(redrive.state, state, `${redrive.state_reason}`);
    return redrive;
  });
}

export async function commandRedrive(
  api: ApiClient,
  id: string,
  command: string,
  reason?: string,
): Promise<RedriveView> {
  const { status, body } = await api.post<RedriveView>(`${root}/${id}/${command}`, { reason });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Runs it to its end, and checks the receipt. */
export async function runToEnd(api: ApiClient, id: string): Promise<RedriveView> {
  await commandRedrive(api, id, 'start');
  return endedRedrive(api, id);
}

export async function endedRedrive(api: ApiClient, id: string, state = 'finished'): Promise<RedriveView> {
  const redrive = await eventually(async () => {
    const shown = await redriveInState(api, id, state);
    assert.ok(shown.receipt);
    return shown;
  });
  checkReceipt(redrive, await itemsOf(api, id));
  return redrive;
}

export async function itemsOf(api: ApiClient, id: string): Promise<readonly ItemView[]> {
  const items: ItemView[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    type Page = Readonly<{ items: ItemView[]; pagination: { next_cursor: string | null } }>;
    const page: Page = (await api.get<Page>(`${root}/${id}/items?page_size=100&cursor=${cursor}`)).body;
    items.push(...page.items);
    cursor = page.pagination.next_cursor;
  }
  return items;
}

/** The counts add up, and the hash is that of the items. */
export function checkReceipt({ counts, receipt }: RedriveView, items: readonly ItemView[]): void {
  assert.ok(receipt);
  const { selected, ...outcomes } = receipt.counts;
  assert.equal(selected, items.length);
  assert.equal(
    Object.values(outcomes).reduce((sum, count) => sum + count, 0),
    selected,
  );
  const { published = 0, quiet = 0 } = counts;
  const shown: typeof counts = { ...counts, published: published + quiet };
  for (const [outcome, count] of Object.entries(receipt.counts)) assert.equal(shown[outcome], count, outcome);
  const lines = items.map(
    (item) =>
      `${[
        item.position,
        item.message_id,
        item.attempt,
        item.outcome,
        item.target,
        item.partition,
        item.offset,
      ]
        .map((field) => field ?? '')
        .join(',')}\n`,
  );
  assert.equal(receipt.sha256, createHash('sha256').update(lines.join('')).digest('hex'));
}
