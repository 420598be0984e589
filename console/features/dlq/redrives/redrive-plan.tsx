import { Link } from '@tanstack/react-router';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { formatDuration } from '../../../lib/times.ts';
import { sendingMs, watchingMs } from './redrive-numbers.ts';
import { exclusionText } from './redrive-words.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';

const shownExamples = 5;

/** What goes where, what does not and why, and how long it takes. */
export function RedrivePlan({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  const { counts, frozen_at: frozenAt } = redrive;
  return (
    <section className={styles['panel']} aria-labelledby="plan">
      <h2 id="plan">{t.plan}</h2>
      <div className={styles['summary']}>
        <strong>{t.addsUp(counts.selected, counts.excluded)}</strong>
        <span>
          {t.frozen} <Time at={frozenAt} />
        </span>
        {redrive.kind === 'retry' ? <KeysAndTime redrive={redrive} /> : null}
      </div>
      {counts.selected === 0 ? <p>{t.nothingGoes}</p> : null}
      <div className={styles['columns']}>
        {redrive.targets.length === 0 ? null : <Targets redrive={redrive} />}
        {redrive.excluded.length === 0 ? null : <Exclusions redrive={redrive} />}
        {redrive.fingerprints.length === 0 ? null : <Causes redrive={redrive} />}
        {redrive.overlaps.length === 0 ? null : <Overlaps redrive={redrive} />}
      </div>
    </section>
  );
}

function KeysAndTime({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  const [{ language }] = usePreferences();
  const { keys, options, counts } = redrive;
  const sending = sendingMs(counts.selected, options.rate_per_second);
  const watching = watchingMs(counts.selected, options.canary ?? null);
  return (
    <>
      <span>
        {options.order === 'none'
          ? t.orderNotKept
          : keys === null
            ? null
            : t.keysKept(keys.distinct, keys.longest)}
        {keys === null || keys.without_key === 0 ? null : ` · ${t.withoutKey(keys.without_key)}`}
      </span>
      <span>
        {sending === null ? t.noLimit : t.sendingTakes(formatDuration(sending, language))}
        {watching === 0 ? null : ` ${t.watchingTakes(formatDuration(watching, language))}`}
      </span>
    </>
  );
}

function Targets({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  return (
    <div>
      <h3 id="targets">{t.targets}</h3>
      <table className={styles['facts']} aria-labelledby="targets">
        <thead>
          <tr>
            <th scope="col">{t.target}</th>
            <th scope="col" data-number>
              {t.count}
            </th>
            <th scope="col">{t.readBy}</th>
          </tr>
        </thead>
        <tbody>
          {redrive.targets.map(({ topic, count, groups, failed_groups: failed = groups }) => (
            <tr key={topic}>
              <td>{topic}</td>
              <td data-number>{formatCount(count)}</td>
              <td>
                {groups.length === 0
                  ? '–'
                  : groups.map((group) => (failed.includes(group) ? group : t.didNotFail(group))).join(', ')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {redrive.groups_error === null ? null : (
        <p className={styles['problem']}>{t.groupsUnknown(redrive.groups_error)}</p>
      )}
    </div>
  );
}

function Exclusions({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  return (
    <div>
      <h3 id="excluded">{t.excludedWhy}</h3>
      <table className={styles['facts']} aria-labelledby="excluded">
        <thead>
          <tr>
            <th scope="col">{t.excludedReason}</th>
            <th scope="col" data-number>
              {t.count}
            </th>
            <th scope="col">{t.examples}</th>
          </tr>
        </thead>
        <tbody>
          {redrive.excluded.map(({ reason, count, sample_ids: ids }) => (
            <tr key={reason}>
              <td>{exclusionText(reason, t)}</td>
              <td data-number>{formatCount(count)}</td>
              <td className={styles['examples']}>
                {ids.slice(0, shownExamples).map((id) => (
                  <Link key={id} to="/dlq/messages/$id" params={{ id }}>
                    {id.slice(0, 8)}
                  </Link>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Causes({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  return (
    <div>
      <h3 id="causes">{t.causes}</h3>
      <table className={styles['facts']} aria-labelledby="causes">
        <tbody>
          {redrive.fingerprints.map(({ fingerprint, count }) => (
            <tr key={fingerprint ?? ''}>
              <td>
                {fingerprint === null ? (
                  t.noFingerprint
                ) : (
                  <Link to="/dlq/groups/$fingerprint" params={{ fingerprint }}>
                    <code>{fingerprint}</code>
                  </Link>
                )}
              </td>
              <td data-number>{formatCount(count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Overlaps({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  return (
    <div>
      <h3 id="overlaps">{t.overlaps}</h3>
      <table className={styles['facts']} aria-labelledby="overlaps">
        <tbody>
          {redrive.overlaps.map(({ redrive_id: id, count }) => (
            <tr key={id}>
              <td>
                <Link to="/dlq/redrives/$id" params={{ id }}>
                  {t.redriveOf(id.slice(0, 8))}
                </Link>
              </td>
              <td data-number>{formatCount(count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
