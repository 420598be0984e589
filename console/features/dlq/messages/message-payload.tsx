import { useId, useMemo, useState } from 'react';
import { kitTexts } from '../../../components/kit-texts/kit-texts.ts';
import { Button } from '../../../components/button/button.tsx';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { protectionTexts } from '../../../components/protection/texts/protection-texts.ts';
import { WholeIsProtected } from '../../../components/protection/whole-is-protected.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { FirstBytes } from '../../../lib/api/api-client.ts';
import { decodeText } from '../../../lib/bytes/decode-text.ts';
import { hexLines } from '../../../lib/bytes/hex-lines.ts';
import { formatJson } from '../../../lib/exact-json/format-json.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { formatBytes, formatCount } from '../../../lib/sizes.ts';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';
import { usePayload, valuePath, type RevealedProps } from './use-payload.ts';

/** The value of the newest version: as stored, with a line per member, or byte by byte. */
export function MessagePayload({ message, revealed = null }: RevealedProps) {
  const t = useText(messagesTexts);
  const kit = useText(kitTexts);
  const may = useMay('dlq:payloads:view');
  const query = usePayload(message, revealed, may.isAllowed);
  return (
    <section className={styles['panel']} aria-labelledby="payload">
      <h2 id="payload">{kit.payload}</h2>
      {may.isAllowed ? (
        <LoadedPanel
          loaded={loadedOf(query, () => null)}
          onRetry={() => void query.refetch()}
          renderEmpty={() => null}
          skeletonRows={3}
        >
          {(payload) => {
            if (payload.kind === 'none') return <p>{t.noValue}</p>;
            if (payload.kind === 'protected') return <WholeIsProtected />;
            return (
              <>
                <PayloadViews value={payload} />
                <Download
                  path={valuePath(message)}
                  size={payload.size}
                  isStored={payload.kind === 'stored'}
                />
              </>
            );
          }}
        </LoadedPanel>
      ) : (
        <p>{may.reason}</p>
      )}
    </section>
  );
}

/** Only of a record without protected parts; the server refuses others, revealed or not. */
function Download({ path, size, isStored }: Readonly<{ path: string; size: number; isStored: boolean }>) {
  const kit = useText(kitTexts);
  const protection = useText(protectionTexts);
  const api = useApi();
  if (!isStored) return <Button disabledReason={protection.downloadRefused}>{kit.download}</Button>;
  return (
    <a href={api.url(path)} download>
      {kit.download} ({formatBytes(size)})
    </a>
  );
}

type View = 'formatted' | 'stored' | 'hex';

function PayloadViews({ value }: Readonly<{ value: FirstBytes }>) {
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
      {/* A region that scrolls can be reached by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={styles['text']} tabIndex={0} role="region" aria-label={kit.payload}>
        {view === 'hex' ? hexText(bytes) : <MaskedText text={shown} />}
      </pre>
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
