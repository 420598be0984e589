import { Lock } from 'lucide-react';
import { Glyph } from '../../components/status/glyph.tsx';
import { useText } from '../../components/text/use-text.ts';
import type { SagaStep } from '../../lib/server-shapes.ts';
import { roleOfState } from './saga-words.ts';
import styles from './sagas.module.css';
import { sagasTexts } from './texts/sagas-texts.ts';

const shownSteps = 12;

/** How far a saga is, as a glyph per step; its name says the same in words. */
export function StepStrip({ done, steps }: Readonly<{ done: number; steps: readonly SagaStep[] | null }>) {
  const t = useText(sagasTexts);
  if (steps === null) return done;
  const states = steps.map(({ name, state }) => `${name} ${t[state]}`).join(', ');
  const label = t.stepsDone(done, steps.length, states);
  return (
    <span className={styles['strip']} role="img" aria-label={label} title={label}>
      <span className={styles['figures']}>
        {done}/{steps.length}
      </span>
      {steps.slice(0, shownSteps).map(({ name, state, pivot }) => (
        <span key={name} className={styles['state']} data-state={state}>
          {pivot ? <Lock size={10} aria-hidden /> : null}
          <Glyph role={roleOfState[state]} />
        </span>
      ))}
      {steps.length > shownSteps ? '…' : null}
    </span>
  );
}
