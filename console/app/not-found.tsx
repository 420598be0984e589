import { Link } from '@tanstack/react-router';
import { Page } from '../components/navigation/page.tsx';
import { useText } from '../components/text/use-text.ts';
import { appTexts } from './texts/app-texts.ts';

export function NotFound() {
  const t = useText(appTexts);
  return (
    <Page title={t.notFound}>
      <p>{t.notFoundHint}</p>
      <p>
        <Link to="/">{t.toStart}</Link>
      </p>
    </Page>
  );
}
