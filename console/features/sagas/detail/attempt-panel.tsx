import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { PayloadViews } from '../../../components/payload/payload-views.tsx';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { Glyph } from '../../../components/status/glyph.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { Saga } from '../../../lib/server-shapes.ts';
import { formatDuration } from '../../../lib/times.ts';
import { attemptTexts, bytesOf } from '../payload-of.ts';
import { sagasTexts } from '../texts/sagas-texts.ts';
import type { LogRow } from '../use-saga.ts';
import { formatTook, resultOf, roleOfResult, tookMs } from './attempt-result.ts';
import styles from './detail.module.css';
import { detailTexts } from './texts/detail-texts.ts';

type Props = Readonly<{ saga: Saga; row: LogRow | undefined; text: string }>;

/** What one attempt sent, and what came back. */
export function AttemptPanel({ saga, row, text }: Props) {
  const t = useText(detailTexts);
  const all = useText(sagasTexts);
  if (row === undefined) return <p className={styles['noAttempt']}>{t.noAttempt}</p>;
  const isUndo = row.action === 'COMPENSATE';
  const what = isUndo ? all.undoOf(row.step_name) : row.step_name;
  return (
    <aside aria-label={t.attemptOf(what, row.attempt)} className={styles['panel']}>
      <h2>
        {row.order}. {t.attemptOf(what, row.attempt)}
      </h2>
      <AttemptFacts saga={saga} row={row} />
      {row.error_message === null ? null : (
        <>
          <h3>{t.error}</h3>
          <pre className={styles['error']}>
            <MaskedText text={row.error_message} />
          </pre>
        </>
      )}
      <Payloads row={row} text={text} />
      <Headers headers={row.headers} />
    </aside>
  );
}

function AttemptFacts({ saga, row }: Omit<Props, 'text'> & Readonly<{ row: LogRow }>) {
  const t = useText(detailTexts);
  const [{ language }] = usePreferences();
  const result = resultOf(row);
  const step = saga.steps?.[row.step_index];
  const method = row.action === 'COMPENSATE' ? step?.compensate : step?.method;
  const { fingerprint, actor, reason } = row;
  return (
    <Definitions
      items={[
        {
          term: t.result,
          value: (
            <span className={styles['result']} data-role={roleOfResult[result]}>
              <Glyph role={roleOfResult[result]} /> {t[result]}
            </span>
          ),
        },
        {
          term: t.service,
          value:
            step === undefined ? null : (
              <>
                {step.service} <code>{method}</code>
              </>
            ),
        },
        { term: t.startedAt, value: <Time at={row.started_at} /> },
        { term: t.endedAt, value: row.completed_at === null ? t.notEnded : <Time at={row.completed_at} /> },
        { term: t.took, value: formatTook(tookMs(row), (ms) => formatDuration(ms, language)) },
        { term: t.actor, value: actor === undefined ? null : t.by(actor, reason ?? '') },
        {
          term: t.trace,
          value:
            saga.trace_id === null ? null : (
              <span className={styles['copyable']}>
                <code>{saga.trace_id}</code> <CopyButton what={t.trace} text={saga.trace_id} />
              </span>
            ),
        },
        {
          term: t.error,
          value:
            fingerprint === null ? null : (
              <Link to="/sagas" search={{ q: `fingerprint:${fingerprint}` }}>
                {t.sameFailure}
              </Link>
            ),
        },
      ]}
    />
  );
}

function Payloads({ row, text }: Readonly<{ row: LogRow; text: string }>) {
  const t = useText(detailTexts);
  const texts = useMemo(() => attemptTexts(text, row.id), [text, row.id]);
  const [request, response] = useMemo(
    () => [bytesOf(texts.request), bytesOf(texts.response)],
    [texts.request, texts.response],
  );
  if (row.payloads_omitted === true) return <p>{t.payloadsOmitted}</p>;
  return (
    <>
      <section aria-label={t.input} className={styles['payload']}>
        <h3>{t.input}</h3>
        {request === null ? <p>{t.noInput}</p> : <PayloadViews value={request} />}
      </section>
      <section aria-label={t.answer} className={styles['payload']}>
        <h3>{t.answer}</h3>
        {response === null ? <p>{t.noAnswer}</p> : <PayloadViews value={response} />}
      </section>
    </>
  );
}

function Headers({ headers }: Pick<LogRow, 'headers'>) {
  const t = useText(detailTexts);
  if (headers === null) return <p>{t.noHeaders}</p>;
  return (
    <>
      <h3>{t.headers}</h3>
      <table className={styles['headers']}>
        <thead>
          <tr>
            <th scope="col">{t.name}</th>
            <th scope="col">{t.value}</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(headers).map(([name, value]) => (
            <tr key={name}>
              <td>
                <code>{name}</code>
              </td>
              <td>
                <code>{value}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
