import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useRef, useState } from 'react';
import { useApi } from '../../components/session/api-context.ts';
import { useSession } from '../../components/session/session.tsx';
import { useMay } from '../../components/session/use-may.ts';
import { useText } from '../../components/text/use-text.ts';
import { useToast } from '../../components/toast/toasts.tsx';
import { messageOf } from '../../lib/api/api-failure.ts';
import { isMe } from '../../lib/is-me.ts';
import type { Me } from '../../lib/server-shapes.ts';
import { entryPath, type Entry } from './inbox-entry.ts';
import { inboxTexts } from './texts/inbox-texts.ts';

type Entries = readonly Entry[];
type Perform = (entry: Entry) => Promise<unknown>;

/** One action, the way back, and what is said about it. */
type Act = Readonly<{
  perform: Perform;
  undo: Perform;
  one: (title: string) => string;
  many: (count: number) => string;
}>;

export type EntryActions = Readonly<{
  /** Why entries cannot be changed at all. */
  refusal: string | undefined;
  assign: (entries: Entries, owner: 'me' | null) => Promise<void>;
  snooze: (entries: Entries) => Promise<void>;
  reopen: (entry: Entry) => Promise<void>;
  /** Rejects, so that its dialog stays open and shows why. */
  finish: (entry: Entry, reason: string) => Promise<void>;
  /** Of an action on several entries. */
  progress: Readonly<{ done: number; all: number }> | null;
  stop: () => void;
}>;

const atOnce = 4;
const titleLength = 60;

/**
 * What people do with entries. All of it is inside Redrive and can be undone, so it is done at once and the toast has the
 * way back. `readAgain` shows it.
 */
export function useEntryActions(readAgain: () => Promise<void>): EntryActions {
  const t = useText(inboxTexts);
  const api = useApi();
  const toast = useToast();
  const { me } = useSession();
  const { run, refusal, settle, progress, stop } = useRun(readAgain);
  const post = (entry: Entry, verb: string, body: unknown): Promise<unknown> =>
    api.send('POST', `${entryPath(entry.id)}/${verb}`, { body });
  const snoozeOne: Perform = (entry) => post(entry, 'snooze', {});
  const wakeOne: Perform = (entry) => post(entry, 'snooze', { off: true });
  const reopenOne: Perform = (entry) => post(entry, 'done', { off: true });
  return {
    refusal,
    progress,
    stop,
    assign: (entries, owner) =>
      run(entries, {
        // What the list shows is taken over knowingly; what somebody else has got meanwhile is refused.
        perform: (entry) => post(entry, 'assign', { owner, take_over: isOfAnother(entry, me) }),
        undo: (entry) => post(entry, 'assign', { owner: entry.owner?.subject ?? null }),
        one: owner === null ? t.unassigned : t.assigned,
        many: t.assignedMany,
      }),
    snooze: (entries) =>
      run(entries, {
        perform: snoozeOne,
        undo: wakeOne,
        one: t.snoozedEntry,
        many: t.snoozedMany,
      }),
    reopen: (entry) =>
      run([entry], {
        perform: entry.state === 'snoozed' ? wakeOne : reopenOne,
        undo: (before) =>
          before.state === 'snoozed'
            ? snoozeOne(before)
            : post(before, 'done', { reason: before.done?.reason ?? '' }),
        one: t.reopened,
        many: t.undoneMany,
      }),
    async finish(entry, reason) {
      await post(entry, 'done', { reason });
      await settle();
      const undo = (): void =>
        void run([entry], {
          perform: reopenOne,
          undo: () => post(entry, 'done', { reason }),
          one: t.reopened,
          many: t.undoneMany,
        });
      toast({ text: t.markedDone(cut(entry.title)), undo });
    },
  };
}

/** Performs, says how it went, and offers the way back for what was done. */
function useRun(readAgain: () => Promise<void>) {
  const t = useText(inboxTexts);
  const toast = useToast();
  const { reason: refusal } = useMay('console:entries:edit');
  const { performAll, ...rest } = usePerformAll(readAgain);
  const run = async (entries: Entries, act: Act): Promise<void> => {
    if (refusal !== undefined) return toast({ text: refusal, isFailure: true });
    const { done, failures } = await performAll(entries, act.perform);
    const [only] = done;
    const [first] = failures;
    const told =
      entries.length === 1 ? (only === undefined ? '' : act.one(cut(only.title))) : act.many(done.length);
    const undo = async (): Promise<void> => {
      const undone = await performAll(done, act.undo);
      const [why] = undone.failures;
      toast(
        why === undefined
          ? { text: t.undoneMany(undone.done.length) }
          : { text: t.refused(undone.failures.length, why), isFailure: true },
      );
    };
    const refused =
      first === undefined ? '' : entries.length === 1 ? first : t.refused(failures.length, first);
    toast({
      text: [told, refused].filter((part) => part !== '').join(' '),
      isFailure: first !== undefined,
      ...(done.length === 0 ? {} : { undo: () => void undo() }),
    });
  };
  return { run, refusal, ...rest };
}

function isOfAnother({ owner }: Entry, me: Me): boolean {
  return owner !== null && !isMe(me, owner.subject);
}

function cut(title: string): string {
  return title.length <= titleLength ? title : `${title.slice(0, titleLength).toWellFormed()}…`;
}

/** Each by its own request: an entry that another operator was faster with is refused alone. */
function usePerformAll(readAgain: () => Promise<void>) {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<EntryActions['progress']>(null);
  const isStopped = useRef(false);
  const settle = async (): Promise<void> => {
    await readAgain();
    void queries.invalidateQueries({ queryKey: ['inbox', 'entry'] });
  };
  const performAll = async (
    entries: Entries,
    perform: Perform,
  ): Promise<Readonly<{ done: Entries; failures: readonly string[] }>> => {
    const done: Entry[] = [];
    const failures: string[] = [];
    const waiting = entries.values();
    const tell = (): void => {
      if (entries.length > 1) setProgress({ done: done.length + failures.length, all: entries.length });
    };
    isStopped.current = false;
    const work = async (): Promise<void> => {
      for (const entry of waiting) {
        if (isStopped.current) return;
        tell();
        await perform(entry).then(
          () => done.push(entry),
          (error: unknown) => failures.push(messageOf(error)),
        );
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    await settle();
    setProgress(null);
    return { done, failures };
  };
  const stop = useCallback(() => {
    isStopped.current = true;
  }, []);
  return { performAll, settle, progress, stop };
}
