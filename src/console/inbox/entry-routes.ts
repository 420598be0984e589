import type { FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import type { Masks } from '../../kernel/protect/protection.ts';
import { cleanText } from '../../kernel/text.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import { addActionRoute } from '../../platform/http/action-route.ts';
import { actorOf } from '../../platform/http/actor.ts';
import type { RouteAccess } from '../../platform/http/access/route-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, nullable, Reason, Timestamp, Uuid } from '../../platform/http/schema-parts.ts';
import { invalidField, readUuidField } from '../../platform/http/slice-input.ts';
import { changeEntry, type Editor } from './change-entry.ts';
import type { EntryChange } from './decide-entry.ts';
import { findEntry } from './find-entry.ts';
import { EntryParams, EntrySchema, entryFields } from './inbox-schemas.ts';
import type { Entry, InboxDeps } from './list-entries.ts';
import { addNote, deleteNote, listNotes, maxNoteLength, type Note } from './notes.ts';
import { presentEntry, type Json } from './present-entry.ts';
import { withinTime } from './read-groups.ts';

const path = '/api/v1/inbox/:id';
/** The handlers look an entry up as far as the caller may see it, and may change it. */
const view: RouteAccess = { permission: 'console:inbox:view', scope: { by: 'any', in: 'selection' } };
const edit: RouteAccess = { permission: 'console:entries:edit', scope: { by: 'any', in: 'selection' } };
const sampleLimit = 3;

const NoteSchema: TSchema = Type.Object(
  {
    id: Uuid,
    author: Type.String({ examples: ['user:https://idp.example.com/realms/main|7f3c'] }),
    author_name: Type.String({ examples: ['ada'] }),
    at: Timestamp,
    text: Type.String({ examples: ['the provider knows; fixed by noon'] }),
  },
  { title: 'InboxNote' },
);

const DetailSchema: TSchema = Type.Object(
  {
    ...entryFields,
    notes_list: Type.Array(NoteSchema, { description: 'Oldest first.' }),
    samples: Type.Array(
      Type.Object({
        id: Type.String({ examples: ['01a1dfae-c3a5-7000-8007-f35eedc32390'] }),
        text: nullable(Type.String({ examples: ['payment-gateway did not answer within 3000 ms'] })),
        link: Type.String({ examples: ['/dlq/messages/01a1dfae-c3a5-7000-8007-f35eedc32390'] }),
      }),
      { description: 'The newest items, three at most.' },
    ),
  },
  { title: 'InboxEntryDetails' },
);

export function addEntryRoutes(app: HttpApp, deps: InboxDeps): void {
  addDetailRoute(app, deps);
  addAssign(app, deps);
  addSnooze(app, deps);
  addDone(app, deps);
  addNoteRoutes(app, deps);
}

function addDetailRoute(app: HttpApp, deps: InboxDeps): void {
  app.get(
    path,
    {
      config: { access: view },
      schema: {
        operationId: 'getInboxEntry',
        summary: 'Get an entry of the inbox with its notes and samples',
        description: 'One whose items are gone has no samples; it is kept with its notes for a while.',
        errors: [404, 503],
        params: EntryParams,
        response: { 200: DetailSchema },
      },
    },
    async (request, reply) => {
      const entry = await findEntry(deps, request.principal, request.params.id);
      const masks = deps.masks[entry.group.slice];
      const notes = await listNotes(deps.db, entry.id);
      return reply.send({
        ...presentEntry(deps, await withTrend(deps, entry)),
        notes_list: notes.map((note) => presentNote(note, masks)),
        samples: await readSamples(deps, entry, masks),
      });
    },
  );
}

async function withTrend({ db }: InboxDeps, entry: Entry): Promise<Entry> {
  const { trends } = entry.part;
  if (entry.trend !== null || entry.group.count === 0 || trends === undefined) return entry;
  const [trend = null] = await withinTime(db, (tx) => trends(tx, [entry.group]));
  return { ...entry, trend };
}

const sampleLength = 300;

async function readSamples(
  { db }: InboxDeps,
  { group, part }: Entry,
  masks: Masks,
): Promise<readonly Json[]> {
  const { samples } = part;
  if (group.count === 0) return [];
  const found =
    group.samples ??
    (samples === undefined ? [] : await withinTime(db, (tx) => samples(tx, group, sampleLimit)));
  return found.slice(0, sampleLimit).map(({ id, text, link }) => ({
    id,
    text: masks.text(text)?.slice(0, sampleLength).toWellFormed() ?? null,
    link,
  }));
}

function presentNote({ id, author, authorName, text, at }: Note, masks: Masks): Json {
  return { id, author, author_name: authorName, at: formatInstant(at), text: masks.text(text) };
}

type ActingBy = Readonly<{ by: Readonly<{ act: Editor['act'] }>; request: FastifyRequest }>;

function editorOf({ by, request }: ActingBy): Editor {
  const { principal } = request;
  // Without authentication the name is what the header says.
  const name = principal.type === 'local' ? actorOf(request) : principal.name;
  return { principal, act: { ...by.act, actor: { ...by.act.actor, name } } };
}

async function changed(
  deps: InboxDeps,
  action: ActingBy & Readonly<{ params: Readonly<{ id: string }> }>,
  change: EntryChange,
): Promise<Json> {
  return presentEntry(deps, await changeEntry(deps, editorOf(action), { id: action.params.id, change }));
}

function addAssign(app: HttpApp, deps: InboxDeps): void {
  addActionRoute(app, {
    path: `${path}/assign`,
    access: edit,
    operationId: 'assignInboxEntry',
    summary: 'Say who takes care of an entry',
    description:
      'If somebody else has it, the answer is 409 with the entry as it stands, unless `take_over` is true. Repeating a request changes nothing.',
    errors: [404, 409, 503],
    params: EntryParams,
    body: Type.Object(
      {
        owner: nullable(
          Type.String({
            minLength: 1,
            maxLength: 600,
            description: '`me`, or a subject; null: nobody.',
            examples: ['me'],
          }),
        ),
        take_over: Type.Optional(Type.Boolean({ default: false })),
      },
      closed,
    ),
    answer: EntrySchema,
    act: async (action) => {
      const { owner, take_over: mayTakeOver = false } = action.body;
      const { actor } = editorOf(action).act;
      const subject = owner === null ? null : cleanText(owner, 600);
      const isMe = subject === 'me' || subject === actor.id;
      const next =
        subject === null ? null : isMe ? { subject: actor.id, name: actor.name } : { subject, name: subject };
      return changed(deps, action, { change: 'assign', owner: next, mayTakeOver, by: actor.id });
    },
  });
}

function addSnooze(app: HttpApp, deps: InboxDeps): void {
  addActionRoute(app, {
    path: `${path}/snooze`,
    access: edit,
    operationId: 'snoozeInboxEntry',
    summary: 'Hide an entry until it grows',
    description:
      'It comes back by itself when it has more items than now, plus `grows_by`. `off` ends that. Repeating a request changes nothing.',
    errors: [404, 409, 503],
    params: EntryParams,
    body: Type.Object(
      {
        grows_by: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
        off: Type.Optional(Type.Boolean({ default: false })),
      },
      closed,
    ),
    answer: EntrySchema,
    act: async (action) => {
      const { grows_by: growsBy = 0, off = false } = action.body;
      return changed(
        deps,
        action,
        off ? { change: 'wake' } : { change: 'snooze', growsBy, by: action.by.actor },
      );
    },
  });
}

function addDone(app: HttpApp, deps: InboxDeps): void {
  addActionRoute(app, {
    path: `${path}/done`,
    access: edit,
    operationId: 'finishInboxEntry',
    summary: 'Mark an entry as done, for what was fixed outside',
    description:
      'Needs a reason. The items stay as they are; the entry comes back when items arrive after that. An entry whose items are gone is done by itself. `off` takes it back. Repeating a request changes nothing; if somebody else was faster, the answer is 409 with the entry as it stands.',
    errors: [404, 409, 503],
    params: EntryParams,
    body: Type.Object(
      { reason: Type.Optional(Reason), off: Type.Optional(Type.Boolean({ default: false })) },
      closed,
    ),
    answer: EntrySchema,
    act: async (action) => {
      const { reason, off = false } = action.body;
      if (off) return changed(deps, action, { change: 'reopen' });
      if (reason === undefined) throw invalidField('console', 'reason', 'required', 'is required');
      const { actor } = action.by;
      return changed(deps, action, { change: 'done', reason: cleanText(reason, 4000), by: actor });
    },
  });
}

function addNoteRoutes(app: HttpApp, deps: InboxDeps): void {
  addActionRoute(app, {
    path: `${path}/notes`,
    access: edit,
    operationId: 'addInboxNote',
    summary: 'Add a note to an entry',
    description:
      'At most 100 for an entry. With a `note_id` of the caller, repeating a request adds nothing; a note with the same id and another text is 409.',
    errors: [404, 409, 503],
    params: EntryParams,
    body: Type.Object(
      {
        text: Type.String({
          minLength: 1,
          maxLength: maxNoteLength,
          pattern: '\\S',
          examples: ['the provider knows; fixed by noon'],
        }),
        note_id: Type.Optional(Uuid),
      },
      closed,
    ),
    answer: NoteSchema,
    act: async (action) => {
      const { text, note_id } = action.body;
      const noteId = note_id === undefined ? null : readUuidField('console', 'note_id', note_id);
      const note = { entryId: action.params.id, noteId, text: cleanText(text, 4 * maxNoteLength) };
      const added = await addNote(deps, editorOf(action), note);
      return presentNote(added, deps.masks.system);
    },
  });
  addActionRoute(app, {
    method: 'DELETE',
    path: `${path}/notes/:note`,
    access: edit,
    operationId: 'deleteInboxNote',
    summary: 'Delete a note of your own',
    description: 'Notes of others are refused.',
    errors: [404, 503],
    params: Type.Object({ ...EntryParams.properties, note: Uuid }, closed),
    answer: EntrySchema,
    act: async (action) => {
      const noteId = readUuidField('console', 'note', action.params.note);
      const note = { entryId: action.params.id, noteId };
      return presentEntry(deps, await deleteNote(deps, editorOf(action), note));
    },
  });
}
