/** Runs something after a moment. */
export type Later = (act: () => void) => void;

/** What is asked for in one task runs in one task: hundreds of rows that change together are drawn once. */
export function createLater(ms: number): Later {
  let batch: (() => void)[] | null = null;
  return (act) => {
    if (batch !== null) {
      batch.push(act);
      return;
    }
    const own = [act];
    batch = own;
    queueMicrotask(() => (batch = null));
    setTimeout(() => own.forEach((one) => one()), ms);
  };
}
