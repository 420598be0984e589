import { Link } from '@tanstack/react-router';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { readLocalPlace } from '../../../lib/view-address.ts';
import type { EntryDetails } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { inboxTexts } from '../texts/inbox-texts.ts';

/** The newest items of an entry, each with its own page. */
export function EntrySamples({ samples }: Pick<EntryDetails, 'samples'>) {
  const t = useText(inboxTexts);
  return (
    <section className={styles['panel']} aria-labelledby="entry-samples">
      <h3 id="entry-samples">{t.newestItems}</h3>
      {samples.length === 0 ? (
        <p className={styles['hint']}>{t.noSamples}</p>
      ) : (
        <ul className={styles['samples']}>
          {samples.map(({ id, text, link }) => {
            const place = readLocalPlace(link);
            return place === null ? null : (
              <li key={id}>
                <Link to={place.to} search={place.search}>
                  <span className={styles['sample']}>
                    {text === null || text === '' ? t.noText : <MaskedText text={text} />}
                  </span>
                </Link>
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
