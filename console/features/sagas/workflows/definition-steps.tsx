import { Lock } from 'lucide-react';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { WorkflowDefinition } from '../../../lib/server-shapes.ts';
import { formatDuration } from '../../../lib/times.ts';
import { shortHash } from '../saga-facts.tsx';
import { sagasTexts } from '../texts/sagas-texts.ts';
import { workflowsTexts } from './texts/workflows-texts.ts';
import styles from './workflows.module.css';

/** The stored form of a definition, as far as it is shown. */
type Stored = Readonly<{
  deadline_ms: number | null;
  steps: readonly Readonly<{
    name: string;
    service: string;
    method: string;
    compensate: string | null;
    pivot: boolean;
    timeout_ms: number;
    retry: Readonly<{ max_attempts: number }>;
  }>[];
}>;

export function DefinitionSteps({ definition }: Readonly<{ definition: WorkflowDefinition }>) {
  const t = useText(workflowsTexts);
  const all = useText(sagasTexts);
  const [{ language }] = usePreferences();
  const { deadline_ms: deadline, steps } = definition.definition as Stored;
  const duration = (ms: number): string => formatDuration(ms, language);
  return (
    <section aria-labelledby="steps" className={styles['section']}>
      <h2 id="steps">{t.stepsOf(shortHash(definition.hash))}</h2>
      {definition.is_current ? null : <p>{t.earlier}</p>}
      <p>{deadline === null ? t.noDeadline : t.deadline(duration(deadline))}</p>
      <div className={styles['tableBox']}>
        <table className={styles['table']}>
          <caption className="visually-hidden">{all.steps}</caption>
          <thead>
            <tr>
              {[t.step, t.calls, t.undo, t.timeout, t.attempts].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {steps.map((step, i) => (
              <tr key={step.name}>
                <td>
                  {i + 1} {step.name}
                  {step.pivot ? (
                    <span className={styles['pivot']}>
                      <Lock size={12} aria-hidden /> {all.pivot}
                    </span>
                  ) : null}
                </td>
                <td>
                  {step.service} <code>{step.method}</code>
                </td>
                <td>
                  <Undo compensate={step.compensate} isPivot={step.pivot} />
                </td>
                <td>{duration(step.timeout_ms)}</td>
                <td>{step.retry.max_attempts}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <details>
        <summary>{t.source}</summary>
        <pre className={styles['source']}>{JSON.stringify(definition.definition, null, 2)}</pre>
      </details>
    </section>
  );
}

function Undo({ compensate, isPivot }: Readonly<{ compensate: string | null; isPivot: boolean }>) {
  const t = useText(workflowsTexts);
  if (isPivot) return '–';
  if (compensate === null) return t.noUndo;
  return compensate === 'none' ? t.nothingToUndo : <code>{compensate}</code>;
}
