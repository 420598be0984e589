import { useText } from '../../components/text/use-text.ts';
import { isProduction } from '../../lib/page-facts.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './environment-badge.module.css';

/** Says where one is by text and shape, never by colour alone. */
export function EnvironmentBadge({ name }: Readonly<{ name: string }>) {
  const t = useText(appTexts);
  const production = isProduction(name);
  return (
    <span className={styles['badge']} data-production={production}>
      <span className="visually-hidden">{t.environment(name)}</span>
      <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden>
        {production ? (
          <path d="M3 0h4l3 3v4l-3 3H3L0 7V3z" fill="currentcolor" />
        ) : (
          <circle cx="5" cy="5" r="4" fill="none" stroke="currentcolor" strokeWidth="1.5" />
        )}
      </svg>
      <span aria-hidden>{name}</span>
    </span>
  );
}
