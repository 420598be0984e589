import assert from 'node:assert/strict';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Answer, ApiClient } from './api-client.ts';
import { storeRecords } from './stored-message.ts';

/** What an edit sends, and what the routes of versions answer; the fields that tests look at. */
export type NewEdit = Readonly<{
  value?: string | null;
  value_base64?: string;
  key?: string | null;
  key_base64?: string;
  headers?: readonly object[];
  target_topic?: string;
  reason?: string;
  may_send_twice?: boolean;
}>;

export type RawView = Readonly<{
  version: number;
  key_text?: string;
  value_text?: string;
  value_base64: string | null;
  headers: readonly Readonly<{ key: string | null; value: string | null }>[];
}>;

export type VersionView = RawView & Readonly<{ target_topic: string; actor: string; reason: string | null }>;

export type DiffView = Readonly<{
  from: number;
  to: number;
  key: unknown;
  target_topic: Readonly<{ from: string; to: string }> | null;
  headers: Readonly<{ added: readonly Readonly<{ name: string }>[]; removed: readonly unknown[] }> | null;
  value: Readonly<{ format: string; lines: readonly string[] }> | null;
}>;

const pathOf = (id: string): string => `/api/v1/dlq/messages/${id}`;

export async function tagOf(api: ApiClient, id: string): Promise<string> {
  const { headers, text } = await api.get(pathOf(id));
  return headers.get('etag') ?? assert.fail(text);
}

/** Edits the message as it is now, or as it was when it had the tag. */
export async function tryEdit(api: ApiClient, id: string, edit: NewEdit, tag?: string): Promise<Answer> {
  const headers = { 'if-match': tag ?? (await tagOf(api, id)), 'x-actor': 'ada' };
  return api.post(`${pathOf(id)}/edit`, { reason: 'it was wrong', ...edit }, headers);
}

/** The new version. */
export async function edit(api: ApiClient, id: string, changes: NewEdit): Promise<number> {
  const { status, body, text } = await tryEdit(api, id, changes);
  assert.equal(status, 200, text);
  return (body as Readonly<{ version: number }>).version;
}

export async function rawOf(api: ApiClient, id: string, version?: number): Promise<RawView> {
  const query = version === undefined ? '' : `?version=${version}`;
  const { status, body, text } = await api.get<RawView>(`${pathOf(id)}/raw${query}`);
  assert.equal(status, 200, text);
  return body;
}

export async function versionsOf(api: ApiClient, id: string): Promise<readonly VersionView[]> {
  const { status, body, text } = await api.get<{ versions: readonly VersionView[] }>(
    `${pathOf(id)}/versions`,
  );
  assert.equal(status, 200, text);
  return body.versions;
}

export async function diffOf(api: ApiClient, id: string, query = ''): Promise<DiffView> {
  const { status, body, text } = await api.get<DiffView>(`${pathOf(id)}/diff${query}`);
  assert.equal(status, 200, text);
  return body;
}

/** The only message, with the key `k`. */
export async function storeOneRecord(db: Database, topic: string, value: string): Promise<string> {
  await storeRecords(db, topic, [{ key: 'k', value }]);
  const [row] = await db.query<{ id: string }>(sql`SELECT id FROM dlq.dlq_messages`);
  return row?.id ?? assert.fail('no message');
}
