import { useText } from '../components/text/use-text.ts';
import { appTexts } from './texts/app-texts.ts';

export function NotFound() {
  const t = useText(appTexts);
  return (
    <section style={{ padding: 16 }}>
      <h1>{t.notFound}</h1>
      <p>{t.notFoundHint}</p>
    </section>
  );
}
