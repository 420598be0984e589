import { lazy, Suspense } from 'react';
import type { Confirmation } from './confirmation.ts';

/** Loaded when the first dialog opens. */
const LoadedDialog = lazy(async () => ({
  default: (await import('./loaded-confirm-dialog.tsx')).LoadedConfirmDialog,
}));

/** Shows a confirmation while there is one. `onEnd` is called after it was performed or cancelled. */
export function ConfirmDialog(props: Readonly<{ confirmation: Confirmation | null; onEnd: () => void }>) {
  const { confirmation, onEnd } = props;
  if (confirmation === null) return null;
  return (
    <Suspense>
      <LoadedDialog confirmation={confirmation} onEnd={onEnd} />
    </Suspense>
  );
}
