import { Link } from '@tanstack/react-router';
import { Definitions } from '../../components/definitions/definitions.tsx';
import { CopyButton } from '../../components/button/copy-button.tsx';
import { MaskedText } from '../../components/protection/masked-text.tsx';
import { useText } from '../../components/text/use-text.ts';
import { Time } from '../../components/time/time.tsx';
import type { Saga } from '../../lib/server-shapes.ts';
import styles from './saga.module.css';
import { situationTexts } from './situation-texts/situation-texts.ts';
import { sagasTexts } from './texts/sagas-texts.ts';
import { WaitingFor } from './waiting-for.tsx';

/** What is known of a saga besides its steps. */
export function SagaFacts({ saga }: Readonly<{ saga: Saga }>) {
  const t = useText(situationTexts);
  const all = useText(sagasTexts);
  const { abort, fingerprint, definition_hash: hash, correlation_id: correlation, trace_id: trace } = saga;
  const code = (text: string, what: string) => (
    <span className={styles['copyable']}>
      <code>{text}</code> <CopyButton what={what} text={text} />
    </span>
  );
  return (
    <Definitions
      items={[
        { term: t.started, value: <Time at={saga.created_at} /> },
        { term: t.updated, value: <Time at={saga.updated_at} /> },
        { term: t.deadline, value: saga.deadline_at === null ? null : <Time at={saga.deadline_at} /> },
        { term: t.waitingFor, value: <WaitingFor saga={saga} /> },
        { term: all.correlation, value: correlation === null ? null : code(correlation, all.correlation) },
        { term: t.startedBy, value: saga.initiated_by },
        {
          term: t.definition,
          value:
            hash === null ? (
              t.noDefinition
            ) : (
              <Link
                to="/sagas/workflows/$name"
                params={{ name: saga.workflow_name }}
                search={{ hash }}
                title={hash}
              >
                {t.pinned(shortHash(hash))}
              </Link>
            ),
        },
        { term: t.trace, value: trace === null ? null : code(trace, t.trace) },
        {
          term: t.cause,
          value: saga.error_message === null ? null : <MaskedText text={saga.error_message} />,
        },
        {
          term: t.sameFailure,
          value:
            fingerprint === null ? null : (
              <Link to="/sagas" search={{ q: `fingerprint:${fingerprint}` }}>
                {t.othersLikeIt}
              </Link>
            ),
        },
        {
          term: t.abort,
          value:
            abort === undefined ? null : (
              <>
                {t.abortedBy(abort.kind, abort.actor, abort.reason)} <Time at={abort.at} />
              </>
            ),
        },
      ]}
    />
  );
}

/** Enough to tell definitions apart by eye. */
export function shortHash(hash: string): string {
  return hash.replace(/^sha256:/, '').slice(0, 12);
}
