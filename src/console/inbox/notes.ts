import { AppError } from '../../kernel/errors.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import { findEditable, lockEntry, refreshed, type Editor } from './change-entry.ts';
import type { Entry, InboxDeps } from './list-entries.ts';

export type Note = Readonly<{ id: string; author: string; authorName: string; text: string; at: Date }>;

const maxNotes = 100;
export const maxNoteLength = 2000;

/** Oldest first. */
export async function listNotes(db: Queryable, entryId: string): Promise<readonly Note[]> {
  return db.query<Note>(sql`
    SELECT n.id, n.author, n.author_name AS "authorName", n.text, n.at FROM console.inbox_notes n
    WHERE n.entry_id = ${entryId} ORDER BY n.at, n.id LIMIT ${maxNotes}`);
}

/** With an id a repeated request adds nothing. The author is whoever acts. */
export async function addNote(
  deps: InboxDeps,
  { principal, act }: Editor,
  { entryId, noteId, text }: Readonly<{ entryId: string; noteId: string | null; text: string }>,
): Promise<Note> {
  const entry = await findEditable(deps, principal, entryId);
  return deps.db.transaction(async (tx) => {
    const stored = await lockEntry(tx, entry);
    const known = noteId === null ? undefined : await findNote(tx, noteId);
    if (known !== undefined) {
      if (known.entryId === entryId && known.author === act.actor.id && known.text === text) return known;
      throw conflict('another note has this id');
    }
    if (stored.notes >= maxNotes) throw conflict(`an entry has at most ${maxNotes} notes`);
    const [note] = await tx.query<Note>(sql`
      INSERT INTO console.inbox_notes (id, entry_id, author, author_name, text)
      VALUES (COALESCE(${noteId}::uuid, platform.new_id()), ${entryId}, ${act.actor.id}, ${act.actor.name}, ${text})
      RETURNING id, author, author_name AS "authorName", text, at`);
    if (note === undefined) throw new Error('the note was not stored');
    await touchEntry(tx, entryId);
    await recordAct(tx, act, {
      resource: `console/inbox/${entryId}`,
      names: entry.group.names,
      detail: { change: 'note', note: note.id },
    });
    return note;
  });
}

/** Only its author deletes a note. */
export async function deleteNote(
  deps: InboxDeps,
  { principal, act }: Editor,
  { entryId, noteId }: Readonly<{ entryId: string; noteId: string }>,
): Promise<Entry> {
  const entry = await findEditable(deps, principal, entryId);
  return deps.db.transaction(async (tx) => {
    await lockEntry(tx, entry);
    const note = await findNote(tx, noteId);
    if (note?.entryId !== entryId)
      throw new AppError('SYS_CONSOLE_NOT_FOUND', 'not_found', `note not found: ${noteId}`);
    if (note.author !== act.actor.id)
      throw new AppError('SYS_CONSOLE_NOT_AUTHOR', 'forbidden', `the note is by ${note.authorName}`);
    await tx.query(sql`DELETE FROM console.inbox_notes WHERE id = ${noteId}`);
    await touchEntry(tx, entryId);
    await recordAct(tx, act, {
      resource: `console/inbox/${entryId}`,
      names: entry.group.names,
      detail: { change: 'delete_note', note: noteId },
    });
    return refreshed(deps, entry, await lockEntry(tx, entry));
  });
}

/** So that streams of changes find it. */
async function touchEntry(tx: Queryable, id: string): Promise<void> {
  await tx.query(sql`UPDATE console.inbox_entries SET seen_at = clock_timestamp() WHERE id = ${id}`);
}

async function findNote(
  db: Pick<Database, 'query'>,
  id: string,
): Promise<(Note & Readonly<{ entryId: string }>) | undefined> {
  const [note] = await db.query<Note & Readonly<{ entryId: string }>>(sql`
    SELECT n.id, n.entry_id AS "entryId", n.author, n.author_name AS "authorName", n.text, n.at
    FROM console.inbox_notes n WHERE n.id = ${id}`);
  return note;
}

function conflict(why: string): AppError {
  return new AppError('SYS_CONSOLE_CONFLICT', 'conflict', `the note is not added: ${why}`);
}
