import type { ReactNode } from 'react';
import { StackedMeter } from '../../../components/charts/stacked-meter.tsx';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { formatDuration } from '../../../lib/times.ts';
import { PaceForm } from './pace-form.tsx';
import { cameBackPercent, hasEnded, outcomeCounts, rampSteps } from './redrive-numbers.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';
import type { RedriveHandle } from './use-redrive.ts';

/** How far it is: stages, outcomes, rate, time left, what came back. */
export function RedriveProgress({ redrive, handle }: Readonly<{ redrive: Redrive; handle: RedriveHandle }>) {
  const t = useText(redrivesTexts);
  const parts = outcomeCounts(redrive).map(({ outcome, count, role }) => ({
    label: t[outcome],
    value: count,
    role,
  }));
  return (
    <section className={styles['panel']} aria-labelledby="progress">
      <h2 id="progress">{t.progress}</h2>
      {redrive.options.canary == null ? null : <Ramp redrive={redrive} />}
      <StackedMeter label={t.outcomesOf(redrive.counts.selected)} parts={parts} />
      <Figures redrive={redrive} />
      {redrive.came_back_after > 0 ? <p>{t.cameBackAfter(redrive.came_back_after)}</p> : null}
      {hasEnded(redrive) ? null : (
        <>
          <PaceForm redrive={redrive} handle={handle} />
          {redrive.state === 'running' ? <p className={styles['hint']}>{t.safeToLeave}</p> : null}
        </>
      )}
    </section>
  );
}

function Ramp({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  const words = {
    done: t.stageDone,
    sending: t.stageSending,
    watching: t.stageWatching,
    waiting: t.stageWaiting,
  } as const;
  return (
    <ol className={styles['ramp']} aria-label={t.ramp}>
      {rampSteps(redrive).map(({ bound, state }) => (
        <li
          key={bound ?? 'rest'}
          data-state={state}
          aria-current={state === 'sending' || state === 'watching' ? 'step' : undefined}
        >
          {bound === null ? t.stageRest : t.stageTo(formatCount(bound))} <span>{words[state]}</span>
        </li>
      ))}
    </ol>
  );
}

function Figures({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  const [{ language }] = usePreferences();
  const { options, rate_now: rateNow, eta_seconds: eta } = redrive;
  const limit = options.rate_per_second === null ? t.noLimit : t.perSecond(String(options.rate_per_second));
  const percent = cameBackPercent(redrive);
  const stop = options.canary?.stop_percent;
  const shown = percent === null ? '0' : percent.toFixed(percent > 0 && percent < 10 ? 1 : 0);
  return (
    <div className={styles['figures']}>
      {hasEnded(redrive) ? null : (
        <>
          <Figure label={t.rateNow}>
            {t.rateOfLimit(rateNow === null ? '0' : rateNow.toFixed(rateNow < 10 ? 1 : 0), limit)}
          </Figure>
          <Figure label={t.timeLeft}>{eta === null ? '–' : formatDuration(eta * 1000, language)}</Figure>
        </>
      )}
      {redrive.kind === 'retry' ? (
        <Figure label={t.cameBack}>
          {stop === undefined ? t.cameBackPlain(shown) : t.cameBackOf(shown, stop)}
        </Figure>
      ) : null}
    </div>
  );
}

function Figure({ label, children }: Readonly<{ label: string; children: ReactNode }>) {
  return (
    <div className={styles['figure']}>
      {label}
      <strong>{children}</strong>
    </div>
  );
}
