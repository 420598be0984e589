import { Lock } from 'lucide-react';
import { Glyph } from '../../components/status/glyph.tsx';
import { useText } from '../../components/text/use-text.ts';
import type { SagaStep } from '../../lib/server-shapes.ts';
import { roleOfState } from './saga-words.ts';
import styles from './sagas.module.css';
import { sagasTexts } from './texts/sagas-texts.ts';

/** The steps with what has become of each, in words. */
export function StepList({ steps }: Readonly<{ steps: readonly SagaStep[] | null }>) {
  const t = useText(sagasTexts);
  if (steps === null) return null;
  return (
    <ol className={styles['steps']} aria-label={t.steps}>
      {steps.map(({ name, state, pivot }) => (
        <li key={name}>
          <span className={styles['stepName']}>{name}</span>
          {pivot ? (
            <span className={styles['pivot']} title={t.pivot}>
              <Lock size={12} aria-hidden />
              <span className="visually-hidden">{t.pivot}</span>
            </span>
          ) : null}
          <StateWord state={state} />
        </li>
      ))}
    </ol>
  );
}

export function StateWord({ state }: Readonly<{ state: SagaStep['state'] }>) {
  const t = useText(sagasTexts);
  return (
    <span className={styles['state']} data-state={state}>
      <Glyph role={roleOfState[state]} /> {t[state]}
    </span>
  );
}
