import type { Operations } from '../../../../lib/server-shapes.ts';

export type Version = Operations['getMessageVersion']['answer'];
export type EditInput = Omit<Operations['editMessage']['input'], 'id'>;
type Header = Version['headers'][number];

/** One header in the form. Bytes that are no text stay as they are. */
export type DraftHeader = Readonly<{ key: string; value: string; kept: Header | null }>;

/** The form as it stands. Null: the record has no key or value. */
export type Draft = Readonly<{
  value: string | null;
  key: string | null;
  topic: string;
  headers: readonly DraftHeader[];
  reason: string;
}>;

/** What can be edited as text; the rest is left as it is. */
export type Editable = Readonly<{ value: boolean; key: boolean }>;

export function editableOf(version: Version): Editable {
  return {
    value: version.value_base64 === null || version.value_text !== undefined,
    key: version.key_base64 === null || version.key_text !== undefined,
  };
}

export function draftOf(version: Version): Draft {
  return {
    value: version.value_text ?? null,
    key: version.key_text ?? null,
    topic: version.target_topic,
    headers: version.headers.map(draftHeader),
    reason: '',
  };
}

function draftHeader(header: Header): DraftHeader {
  const isText = header.key !== null && header.value !== null;
  return {
    key: header.key ?? '',
    value: header.value ?? '',
    kept: isText ? null : header,
  };
}

/** Only what was changed: everything else stays byte for byte. */
export function changesOf(draft: Draft, version: Version): Omit<EditInput, 'reason'> {
  const before = draftOf(version);
  const can = editableOf(version);
  return {
    ...(can.value && draft.value !== before.value ? { value: draft.value } : {}),
    ...(can.key && draft.key !== before.key ? { key: draft.key } : {}),
    ...(draft.topic.trim() === before.topic ? {} : { target_topic: draft.topic.trim() }),
    ...(JSON.stringify(draft.headers) === JSON.stringify(before.headers)
      ? {}
      : { headers: draft.headers.map(({ key, value, kept }) => kept ?? { key, value }) }),
  };
}

export function hasChanges(draft: Draft, version: Version): boolean {
  return Object.keys(changesOf(draft, version)).length > 0;
}
