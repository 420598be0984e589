import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { messageOf } from '../../../lib/api/api-failure.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { Field } from '../../../components/form/form-parts.tsx';
import { readRate } from './plan-form.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';
import type { RedriveHandle } from './use-redrive.ts';

/** Another rate, while it runs. */
export function PaceForm({ redrive, handle }: Readonly<{ redrive: Redrive; handle: RedriveHandle }>) {
  const t = useText(redrivesTexts);
  const toast = useToast();
  const may = useMay('dlq:redrives:start');
  const now = redrive.options.rate_per_second;
  const [text, setText] = useState(now === null ? '' : String(now));
  const [isBusy, setBusy] = useState(false);
  const rate = readRate(text);
  const change = async (): Promise<void> => {
    if (rate === undefined || may.reason !== undefined) return;
    setBusy(true);
    try {
      await handle.patch(rate);
      toast({ text: t.paceChanged });
    } catch (error) {
      toast({ text: messageOf(error), isFailure: true });
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className={styles['pace']}
      onSubmit={(event) => {
        event.preventDefault();
        void change();
      }}
    >
      <Field
        label={t.rate}
        inputMode="decimal"
        value={text}
        problem={rate === undefined ? t.wrongRate : undefined}
        onChange={setText}
      />
      <Button type="submit" isBusy={isBusy} disabledReason={may.reason}>
        {t.changePace}
      </Button>
    </form>
  );
}
