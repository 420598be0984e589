import { CopyButton } from '../../../components/button/copy-button.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { formatJson } from '../../../lib/exact-json/format-json.ts';
import styles from './job.module.css';

type Props = Readonly<{
  title: string;
  /** As the server wrote it; null if there is none. */
  text: string | null;
  /** In place of a missing value. */
  missing: string;
}>;

/** A value of a job, with a line per member and the digits of its numbers. */
export function JobValue({ title, text, missing }: Props) {
  if (text === null) return <p>{missing}</p>;
  const formatted = formatJson(text);
  const shown = formatted.isJson ? formatted.text : text;
  return (
    <section className={styles['panel']} aria-label={title}>
      <h2>
        {title} <CopyButton what={title} text={shown} />
      </h2>
      {/* A region that scrolls can be reached by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={styles['text']} tabIndex={0} role="region" aria-label={title}>
        <MaskedText text={shown} />
      </pre>
    </section>
  );
}
