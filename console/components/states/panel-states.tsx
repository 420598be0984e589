import { useEffect, useState, type ReactNode } from 'react';
import { Button } from '../button/button.tsx';
import { CopyButton } from '../button/copy-button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import { ApiFailure } from '../../lib/api/api-failure.ts';
import styles from './panel-states.module.css';

const skeletonDelayMs = 150;

/** Rows of the right height, after a moment in which most answers arrive. */
export function Skeleton({ rows = 8 }: Readonly<{ rows?: number }>) {
  const t = useText(kitTexts);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), skeletonDelayMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" aria-busy="true">
      <span className="visually-hidden">{t.loading}</span>
      {isLate
        ? Array.from({ length: rows }, (_, i) => <div key={i} className={styles['skeleton']} aria-hidden />)
        : null}
    </div>
  );
}

/** What failed, with what support needs to find it, and the way to try again. What was loaded stays below it. */
export function FailedState(
  props: Readonly<{ error: Error; onRetry: () => void; keepsData?: boolean; isRetrying?: boolean }>,
) {
  const t = useText(kitTexts);
  const { error, keepsData = false, isRetrying = false } = props;
  const failure = error instanceof ApiFailure ? error : null;
  const isTimeout = failure !== null && (failure.code === 'TIMEOUT' || failure.status === 504);
  return (
    <div role="alert" className={styles['failed']}>
      <p>
        <strong>{t.failedToLoad}.</strong> {error.message}. {isTimeout ? t.timedOut : null}{' '}
        {keepsData ? t.stillShown : null}
      </p>
      <p className={styles['facts']}>
        {failure === null ? null : (
          <span>
            {t.code} <code>{failure.code}</code>
          </span>
        )}
        {failure?.requestId == null ? null : (
          <span>
            {t.requestId} <code>{failure.requestId}</code>{' '}
            <CopyButton what={t.requestId} text={failure.requestId} />
          </span>
        )}
        <Button onPress={props.onRetry} isBusy={isRetrying}>
          {t.retry}
        </Button>
      </p>
    </div>
  );
}

/** An answer without rows. `children` say since when, or what to do. */
export function EmptyState({ title, children }: Readonly<{ title: string; children?: ReactNode }>) {
  return (
    <div className={styles['empty']} data-state="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
