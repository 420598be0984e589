import { lazy, Suspense } from 'react';

export type DiffEditorProps = Readonly<{
  /** Names the draft. */
  label: string;
  beforeLabel: string;
  /** What is stored. */
  before: string;
  /** The draft. */
  value: string;
  isJson: boolean;
  isInvalid?: boolean;
  onChange: (value: string) => void;
}>;

const MergeEditor = lazy(async () => ({ default: (await import('./merge-editor.tsx')).MergeEditor }));

/** A text that is changed beside the text that it replaces. */
export function DiffEditor(props: DiffEditorProps) {
  return (
    <Suspense>
      <MergeEditor {...props} />
    </Suspense>
  );
}
