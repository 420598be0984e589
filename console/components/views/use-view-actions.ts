import { useQueryClient } from '@tanstack/react-query';
import { messageOf } from '../../lib/api/api-failure.ts';
import { useApi } from '../session/api-context.ts';
import { useToast, type Toast } from '../toast/toasts.tsx';
import { useText } from '../text/use-text.ts';
import { viewsTexts } from './texts/views-texts.ts';
import { viewsKey, viewsPath, type SavedView } from './use-views.ts';

export type ViewActions = Readonly<{
  /** These two reject, so that their dialog stays open and shows why. */
  save(view: Pick<SavedView, 'name' | 'url' | 'shared'>): Promise<void>;
  rename(view: SavedView, name: string): Promise<void>;
  share(view: SavedView, shared: boolean): Promise<void>;
  remove(view: SavedView): Promise<void>;
}>;

/** What can be done with saved views. All but saving can be undone. */
export function useViewActions(): ViewActions {
  const t = useText(viewsTexts);
  const api = useApi();
  const toast = useToast();
  const queries = useQueryClient();
  const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: viewsKey });
  const pathOf = ({ id }: SavedView): string => `${viewsPath}/${encodeURIComponent(id)}`;
  const change = async (view: SavedView, body: Partial<SavedView>): Promise<void> => {
    await api.send('PATCH', pathOf(view), { body });
    await readAgain();
  };
  const save: ViewActions['save'] = async ({ name, url, shared }) => {
    await api.send('POST', viewsPath, { body: { name, url, shared } });
    await readAgain();
  };
  /** Does it at once, says so, and offers the way back. */
  const attempt = async (act: () => Promise<void>, done: Toast): Promise<void> => {
    try {
      await act();
      toast(done);
    } catch (error) {
      toast({ text: messageOf(error), isFailure: true });
    }
  };
  const undoBy = (act: () => Promise<void>, text: string) => (): void => void attempt(act, { text });
  return {
    async save(view) {
      await save(view);
      toast({ text: t.saved(view.name) });
    },
    async rename(view, name) {
      await change(view, { name });
      toast({
        text: t.renamed(name),
        undo: undoBy(() => change(view, { name: view.name }), t.renamed(view.name)),
      });
    },
    share: (view, shared) =>
      attempt(() => change(view, { shared }), {
        text: shared ? t.nowShared(view.name) : t.nowOwn(view.name),
        undo: undoBy(
          () => change(view, { shared: !shared }),
          shared ? t.nowOwn(view.name) : t.nowShared(view.name),
        ),
      }),
    remove: (view) =>
      attempt(
        async () => {
          await api.send('DELETE', pathOf(view));
          await readAgain();
        },
        { text: t.removed(view.name), undo: undoBy(() => save(view), t.saved(view.name)) },
      ),
  };
}
