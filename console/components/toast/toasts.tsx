import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { Button } from '../button/button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import styles from './toasts.module.css';

export type Toast = Readonly<{
  text: string;
  /** Failures stay until they are dismissed. */
  isFailure?: boolean;
  undo?: () => void;
}>;

type Shown = Toast & Readonly<{ id: number }>;

const shownMs = 8000;
const maxShown = 5;
const ToastsContext = createContext<(toast: Toast) => void>(() => {});

/** Shows a message for a moment, above the page. */
export function useToast(): (toast: Toast) => void {
  return useContext(ToastsContext);
}

export function ToastsProvider({ children }: Readonly<{ children: ReactNode }>) {
  const [{ toasts }, setState] = useState<Readonly<{ next: number; toasts: readonly Shown[] }>>({
    next: 1,
    toasts: [],
  });
  const show = useCallback((toast: Toast) => {
    setState(({ next, toasts }) => ({
      next: next + 1,
      toasts: [...toasts, { ...toast, id: next }].slice(-maxShown),
    }));
  }, []);
  const dismiss = useCallback((id: number) => {
    setState(({ next, toasts }) => ({ next, toasts: toasts.filter((toast) => toast.id !== id) }));
  }, []);
  const [failures, others] = useMemo(
    () => [toasts.filter((toast) => toast.isFailure), toasts.filter((toast) => !toast.isFailure)],
    [toasts],
  );
  return (
    <ToastsContext value={show}>
      {children}
      <div className={styles['toasts']}>
        <div role="alert">
          {failures.map((toast) => (
            <OneToast key={toast.id} toast={toast} onDismiss={dismiss} />
          ))}
        </div>
        <div role="status">
          {others.map((toast) => (
            <OneToast key={toast.id} toast={toast} onDismiss={dismiss} />
          ))}
        </div>
      </div>
    </ToastsContext>
  );
}

/** Does not disappear while the pointer or focus is on it. */
function OneToast({ toast, onDismiss }: Readonly<{ toast: Shown; onDismiss: (id: number) => void }>) {
  const t = useText(kitTexts);
  const [isHeld, setHeld] = useState(false);
  const { id, isFailure = false, undo } = toast;
  useEffect(() => {
    if (isFailure || isHeld) return;
    const timer = setTimeout(() => onDismiss(id), shownMs);
    return () => clearTimeout(timer);
  }, [id, isFailure, isHeld, onDismiss]);
  const hold = { onPointerEnter: () => setHeld(true), onPointerLeave: () => setHeld(false) };
  return (
    <div
      className={styles['toast']}
      data-failure={isFailure || undefined}
      {...hold}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <span>{toast.text}</span>
      {undo === undefined ? null : (
        <Button
          onPress={() => {
            undo();
            onDismiss(id);
          }}
        >
          {t.undo}
        </Button>
      )}
      <Button kind="quiet" onPress={() => onDismiss(id)}>
        {t.dismiss}
      </Button>
    </div>
  );
}
