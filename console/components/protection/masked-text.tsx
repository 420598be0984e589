import { useText } from '../text/use-text.ts';
import styles from './protection.module.css';
import { protectionTexts } from './texts/protection-texts.ts';

const maskToken = /(\[masked(?::[a-p]{16})?\])/;

/** A text in which the masks of the server stand out. */
export function MaskedText({ text }: Readonly<{ text: string }>) {
  const t = useText(protectionTexts);
  if (!text.includes('[masked')) return text;
  return text.split(maskToken).map((part, i) =>
    i % 2 === 0 ? (
      part
    ) : (
      <mark key={i} className={styles['mask']} title={part.includes(':') ? t.maskedWithHash : t.maskedByRule}>
        {part}
      </mark>
    ),
  );
}
