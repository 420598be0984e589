import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { WholeIsProtected } from '../../../components/protection/whole-is-protected.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { Glyph } from '../../../components/status/glyph.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Proof as ProofShape } from '../../../lib/server-shapes.ts';
import type { StatusRole } from '../../../lib/status/status-roles.ts';
import { AttemptTable } from '../orders/order-attempts.tsx';
import styles from './ledger.module.css';
import { ledgerTexts } from './texts/ledger-texts.ts';
import { useProof } from './use-proof.ts';

type KeyUse = Omit<ProofShape, 'earlier_uses'>;

/** What the ledger records under a key: accepted, then succeeded once, or ended without an effect. */
export function Proof({ ledgerKey }: Readonly<{ ledgerKey: string }>) {
  const t = useText(ledgerTexts);
  return (
    <section className={styles['panel']} aria-labelledby="proof">
      <h2 id="proof">{t.proof}</h2>
      {ledgerKey.startsWith('[masked') ? <WholeIsProtected /> : <Found ledgerKey={ledgerKey} />}
    </section>
  );
}

function Found({ ledgerKey }: Readonly<{ ledgerKey: string }>) {
  const t = useText(ledgerTexts);
  const query = useProof(ledgerKey);
  return (
    <LoadedPanel
      loaded={loadedOf(query, (found) => (found === 'unused' ? 'nothing' : null))}
      onRetry={() => void query.refetch()}
      renderEmpty={() => (
        <EmptyState title={t.notFound(ledgerKey)}>
          <p>{t.notFoundHint}</p>
        </EmptyState>
      )}
    >
      {(found) => (found === 'unused' ? null : <Uses proof={found} />)}
    </LoadedPanel>
  );
}

function Uses({ proof }: Readonly<{ proof: ProofShape }>) {
  const t = useText(ledgerTexts);
  return (
    <div className={styles['uses']}>
      <OneUse use={proof} />
      {proof.earlier_uses.length === 0 ? null : <h3>{t.earlier}</h3>}
      {proof.earlier_uses.map((use) => (
        <OneUse key={use.order_id} use={use} />
      ))}
    </div>
  );
}

function OneUse({ use }: Readonly<{ use: KeyUse }>) {
  const t = useText(ledgerTexts);
  return (
    <article className={styles['use']} aria-label={t.open(String(use.order_id))}>
      <Steps use={use} />
      {use.archived ? <p>{t.isArchived}</p> : null}
      <Definitions
        items={[
          { term: t.order, value: orderLink(use.order_id) },
          { term: t.destination, value: use.order?.destination ?? t.noOrder },
          { term: t.outsideId, value: masked(use.outside_id) },
          { term: t.requestDigest, value: masked(use.request_digest) },
          { term: t.resultDigest, value: masked(use.result_digest) },
          { term: t.created, value: <Time at={use.created_at} /> },
          { term: t.updated, value: <Time at={use.updated_at} /> },
          {
            term: t.expires,
            value: use.archived ? null : use.expires_at === null ? t.whenEnded : <Time at={use.expires_at} />,
          },
          { term: t.archived, value: use.archived_at === null ? null : <Time at={use.archived_at} /> },
          { term: t.supersedes, value: orderLink(use.supersedes_id) },
          { term: t.supersededBy, value: orderLink(use.superseded_by_id) },
        ]}
      />
      <h4>{t.attempts}</h4>
      <AttemptTable attempts={use.attempts} />
    </article>
  );
}

/** Accepted, and how it ended: two marks with a line between them. */
function Steps({ use }: Readonly<{ use: KeyUse }>) {
  const t = useText(ledgerTexts);
  const isInDoubt = use.order?.in_doubt === true;
  const end: Readonly<Record<KeyUse['status'], readonly [StatusRole, string, string]>> = {
    accepted: [isInDoubt ? 'doubt' : 'queued', t.succeeded, t.notConfirmed],
    succeeded: ['done', t.succeeded, t.once],
    failed: isInDoubt ? ['doubt', t.failedInDoubt, t.failedText] : ['ended', t.failed, t.failedText],
  };
  const [meaning, title, text] = end[use.status];
  return (
    <ol className={styles['steps']}>
      <Step meaning="done" title={t.accepted}>
        <Time at={use.created_at} show="absolute" />
      </Step>
      <Step meaning={meaning} title={title}>
        {text}
        {use.outside_id === null ? null : <> · {masked(use.outside_id)}</>}
      </Step>
    </ol>
  );
}

function Step(props: Readonly<{ meaning: StatusRole; title: string; children: ReactNode }>) {
  return (
    <li className={styles['step']} data-role={props.meaning}>
      <Glyph role={props.meaning} /> <strong>{props.title}</strong> <span>{props.children}</span>
    </li>
  );
}

function orderLink(id: number | null): ReactNode {
  if (id === null) return null;
  return (
    <Link to="/outbox/orders/$id" params={{ id: String(id) }}>
      {id}
    </Link>
  );
}

function masked(text: string | null): ReactNode {
  if (text === null) return null;
  return (
    <code>
      <MaskedText text={text} />
    </code>
  );
}
