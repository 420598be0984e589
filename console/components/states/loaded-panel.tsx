import type { ReactNode } from 'react';
import type { EmptyReason, Loaded } from '../../lib/loaded.ts';
import { FailedState, Skeleton } from './panel-states.tsx';

type Props<T> = Readonly<{
  loaded: Loaded<T>;
  onRetry: () => void;
  /** What stands in place of data that is empty. */
  renderEmpty: (reason: EmptyReason) => ReactNode;
  children: (data: T, isRefreshing: boolean) => ReactNode;
  skeletonRows?: number;
}>;

/** One panel in the state in which its data is. What was loaded before stays below an error. */
export function LoadedPanel<T>({ loaded, onRetry, renderEmpty, children, skeletonRows = 8 }: Props<T>) {
  switch (loaded.state) {
    case 'loading':
      return <Skeleton rows={skeletonRows} />;
    case 'failed':
      return (
        <>
          <FailedState error={loaded.error} onRetry={onRetry} keepsData={loaded.last !== null} />
          {loaded.last === null ? null : children(loaded.last, false)}
        </>
      );
    case 'empty':
      return renderEmpty(loaded.reason);
    case 'rows':
      return children(loaded.rows, loaded.isRefreshing);
  }
}
