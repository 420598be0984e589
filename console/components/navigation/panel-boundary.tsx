import { CatchBoundary, useLocation, type ErrorComponentProps } from '@tanstack/react-router';
import { createContext, useContext, type ReactNode } from 'react';
import { messageOf } from '../../lib/api/api-failure.ts';
import { Button } from '../button/button.tsx';
import { useText } from '../text/use-text.ts';
import styles from './panel-boundary.module.css';
import { navigationTexts } from './texts/navigation-texts.ts';

const PanelName = createContext('');

/** Keeps a fault of one panel from taking the page with it. Another page, or the button, tries again. */
export function PanelBoundary({ name, children }: Readonly<{ name: string; children: ReactNode }>) {
  const { href } = useLocation();
  return (
    <PanelName value={name}>
      <CatchBoundary getResetKey={() => href} errorComponent={NamedPanelError}>
        {children}
      </CatchBoundary>
    </PanelName>
  );
}

function NamedPanelError({ error, reset }: ErrorComponentProps) {
  return <PanelError name={useContext(PanelName)} error={error} onRetry={reset} />;
}

export function PanelError({
  name,
  error,
  onRetry,
}: Readonly<{ name: string; error: unknown; onRetry: () => void }>) {
  const t = useText(navigationTexts);
  return (
    <div role="alert" className={styles['error']}>
      <h2>{t.cannotShow(name)}</h2>
      <p>{t.faultOfConsole}</p>
      <pre>{messageOf(error)}</pre>
      <Button onPress={onRetry}>{t.tryAgain}</Button>
    </div>
  );
}
