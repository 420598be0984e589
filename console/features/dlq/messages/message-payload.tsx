import { kitTexts } from '../../../components/kit-texts/kit-texts.ts';
import { Button } from '../../../components/button/button.tsx';
import { PayloadViews } from '../../../components/payload/payload-views.tsx';
import { protectionTexts } from '../../../components/protection/texts/protection-texts.ts';
import { WholeIsProtected } from '../../../components/protection/whole-is-protected.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { formatBytes } from '../../../lib/sizes.ts';
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
                <PayloadViews isFindable value={payload} />
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
