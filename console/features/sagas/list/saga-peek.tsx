import { LinkButton } from '../../../components/button/link-button.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { SagaFacts } from '../saga-facts.tsx';
import { Situation } from '../situation.tsx';
import { StepList } from '../step-list.tsx';
import styles from '../saga.module.css';
import { useSaga } from '../use-saga.ts';
import { SagaStatus } from '../waiting-for.tsx';
import { listTexts } from './texts/list-texts.ts';

/** The first screen of a saga, beside its list. */
export function SagaPeek({ id }: Readonly<{ id: string }>) {
  const t = useText(listTexts);
  const { query, readAgain } = useSaga(id);
  return (
    <div className={styles['peek']}>
      <LoadedPanel
        loaded={loadedOf(query, () => null)}
        onRetry={() => void readAgain()}
        renderEmpty={() => null}
      >
        {({ saga, log }) => (
          <>
            <div className={styles['peekHead']}>
              <SagaStatus saga={saga} isFilled />
              <LinkButton to={`/sagas/${id}`}>{t.open}</LinkButton>
            </div>
            <Situation saga={saga} log={log} />
            <StepList steps={saga.steps} />
            <SagaFacts saga={saga} />
          </>
        )}
      </LoadedPanel>
    </div>
  );
}
