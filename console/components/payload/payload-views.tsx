import { useId, useMemo, useState } from 'react';
import type { FirstBytes } from '../../lib/api/api-client.ts';
import { decodeText } from '../../lib/bytes/decode-text.ts';
import { hexLines } from '../../lib/bytes/hex-lines.ts';
import { formatJson } from '../../lib/exact-json/format-json.ts';
import { formatBytes, formatCount } from '../../lib/sizes.ts';
import { CopyButton } from '../button/copy-button.tsx';
import { CodeText } from '../code/code-text.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import styles from './payload.module.css';

type View = 'formatted' | 'stored' | 'hex';

type Props = Readonly<{
  value: FirstBytes;
  /** It is the text of its page: Ctrl+F searches in it. */
  isFindable?: boolean;
}>;

/** The first bytes of a value, and how many it has: as stored, with a line per member, or byte by byte. */
export function PayloadViews({ value, isFindable = false }: Props) {
  const kit = useText(kitTexts);
  const name = useId();
  const { bytes, size } = value;
  const isCut = bytes.length < size;
  const decoded = useMemo(() => decodeText(bytes, isCut), [bytes, isCut]);
  const formatted = useMemo(() => (isCut ? null : formatJson(decoded.text)), [decoded, isCut]);
  const isText = decoded.invalidCount === 0;
  const [chosen, setView] = useState<View | null>(null);
  const view = chosen ?? (formatted?.isJson === true ? 'formatted' : isText ? 'stored' : 'hex');
  if (bytes.length === 0) return <p>{kit.emptyValue}</p>;
  const shown = view === 'formatted' && formatted?.isJson === true ? formatted.text : decoded.text;
  return (
    <>
      <div className={styles['views']} role="radiogroup" aria-label={kit.view}>
        {(['formatted', 'stored', 'hex'] as const).map((one) => (
          <label key={one}>
            <input type="radio" name={name} checked={view === one} onChange={() => setView(one)} />
            {{ formatted: kit.formatted, stored: kit.asStored, hex: kit.hex }[one]}
          </label>
        ))}
        <CopyButton what={kit.payload} text={shown} />
      </div>
      <Remarks decoded={decoded} formatted={formatted} view={view} />
      {isCut ? <p role="status">{kit.bytesShown(formatBytes(bytes.length), formatBytes(size))}</p> : null}
      <CodeText
        text={view === 'hex' ? hexText(bytes) : shown}
        label={kit.payload}
        isJson={view !== 'hex' && formatted?.isJson === true}
        hasInvalidBytes={view !== 'hex' && !isText}
        isFindable={isFindable}
      />
    </>
  );
}

function Remarks(
  props: Readonly<{
    decoded: ReturnType<typeof decodeText>;
    formatted: ReturnType<typeof formatJson> | null;
    view: View;
  }>,
) {
  const kit = useText(kitTexts);
  const { decoded, formatted, view } = props;
  return (
    <>
      {decoded.invalidCount > 0 && view !== 'hex' ? (
        <p>{kit.invalidUtf8(decoded.invalidCount, decoded.invalidAt[0] ?? 0)}</p>
      ) : null}
      {view === 'formatted' && formatted !== null && !formatted.isJson ? (
        <p>{kit.notJson(formatted.line, formatted.column)}</p>
      ) : null}
      {formatted?.isJson === true && formatted.duplicateKeys.length > 0 ? (
        <p>{kit.duplicateKeys(formatted.duplicateKeys.join(', '))}</p>
      ) : null}
    </>
  );
}

const hexBytes = 65_536;

function hexText(bytes: Uint8Array): string {
  const lines = hexLines(bytes.subarray(0, hexBytes)).map(
    ({ offset, hex, text }) => `${offset}  ${hex.padEnd(47)}  ${text}`,
  );
  const rest = bytes.length - hexBytes;
  return rest > 0 ? `${lines.join('\n')}\n… ${formatCount(rest)}` : lines.join('\n');
}
