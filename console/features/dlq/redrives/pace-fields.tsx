import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { CheckField, Field, FormPart } from '../../../components/form/form-parts.tsx';
import { kinds, type Kind, type PlanField, type PlanForm } from './plan-form.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';

type Props = Readonly<{ form: PlanForm; onChange: (part: Partial<PlanForm>) => void }>;

export function KindFields({ form, onChange }: Props) {
  const t = useText(redrivesTexts);
  const hints: Readonly<Record<Kind, string>> = {
    retry: t.retryHint,
    reopen: t.reopenHint,
    dead: t.deadHint,
    delete: t.deleteHint,
  };
  return (
    <FormPart legend={t.kindLegend}>
      <div className={styles['kinds']}>
        {kinds.map((kind) => (
          <label key={kind} className={styles['check']}>
            <input
              type="radio"
              name="kind"
              checked={form.kind === kind}
              onChange={() => onChange({ kind })}
              aria-describedby="kind-hint"
            />
            {t[kind]}
          </label>
        ))}
      </div>
      <p id="kind-hint" className={styles['hint']}>
        {hints[form.kind]}
      </p>
    </FormPart>
  );
}

export function PaceFields({
  form,
  onChange,
  problems,
}: Props & Readonly<{ problems: readonly PlanField[] }>) {
  const t = useText(redrivesTexts);
  const mayReopen = useMay('dlq:messages:reopen');
  const isRetry = form.kind === 'retry';
  return (
    <>
      <FormPart legend={t.pace}>
        <div className={styles['fields']}>
          <Field
            label={t.rate}
            hint={t.rateHint}
            inputMode="decimal"
            value={form.rate}
            problem={problems.includes('rate') ? t.wrongRate : undefined}
            onChange={(rate) => onChange({ rate })}
          />
        </div>
        {isRetry ? (
          <>
            <CheckField
              label={t.keepsOrder}
              hint={t.keepsOrderHint}
              checked={form.keepsOrder}
              onChange={(keepsOrder) => onChange({ keepsOrder })}
            />
            <CheckField
              label={t.reopens}
              {...(mayReopen.reason === undefined ? {} : { hint: mayReopen.reason })}
              checked={form.reopens && mayReopen.isAllowed}
              onChange={(reopens) => onChange({ reopens: reopens && mayReopen.isAllowed })}
            />
          </>
        ) : null}
      </FormPart>
      {isRetry ? <CanaryFields form={form} onChange={onChange} problems={problems} /> : null}
    </>
  );
}

function CanaryFields({ form, onChange, problems }: Props & Readonly<{ problems: readonly PlanField[] }>) {
  const t = useText(redrivesTexts);
  return (
    <FormPart legend={t.canary}>
      <CheckField
        label={t.hasCanary}
        checked={form.hasCanary}
        onChange={(hasCanary) => onChange({ hasCanary })}
      />
      {form.hasCanary ? (
        <div className={styles['fields']}>
          <Field
            label={t.stages}
            hint={t.stagesHint}
            value={form.stages}
            problem={problems.includes('stages') ? t.wrongStages : undefined}
            onChange={(stages) => onChange({ stages })}
          />
          <Field
            label={t.watch}
            inputMode="numeric"
            value={form.watchSeconds}
            problem={problems.includes('watchSeconds') ? t.wrongWatch : undefined}
            onChange={(watchSeconds) => onChange({ watchSeconds })}
          />
          <Field
            label={t.stopPercent}
            inputMode="decimal"
            value={form.stopPercent}
            problem={problems.includes('stopPercent') ? t.wrongPercent : undefined}
            onChange={(stopPercent) => onChange({ stopPercent })}
          />
        </div>
      ) : null}
    </FormPart>
  );
}
