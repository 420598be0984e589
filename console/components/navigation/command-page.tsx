import { createRoute, type AnyRoute } from '@tanstack/react-router';
import type { Catalogue, Texts } from '../../lib/text/catalogue.ts';
import { useText } from '../text/use-text.ts';
import { Page } from './page.tsx';
import { navigationTexts } from './texts/navigation-texts.ts';

type CommandPageOptions<Of extends Texts> = Readonly<{
  path: string;
  texts: Catalogue<Of>;
  title: keyof Of & string;
  /** The command that shows the same. */
  command: string;
}>;

/** The route of a page that the console does not have yet: it names the command which shows the same. */
export function commandRoute<Of extends Texts>(root: AnyRoute, options: CommandPageOptions<Of>): AnyRoute {
  const { path, texts, title, command } = options;
  return createRoute({
    getParentRoute: () => root,
    path,
    component: function CommandPage() {
      const t = useText(navigationTexts);
      const titles = useText(texts);
      return (
        <Page title={String(titles[title])}>
          <p>{t.onCommandLine}</p>
          <pre>npx redrive {command}</pre>
        </Page>
      );
    },
  });
}
