import { createContext, useContext } from 'react';

/** The way to the protected parts of the item on screen. */
export type Reveal = Readonly<{
  /** Asks for a reason, then shows them. */
  ask(): void;
  /** Why the user cannot; undefined if they may. */
  refusal: string | undefined;
}>;

export const RevealContext = createContext<Reveal | null>(null);

/** Null where protected parts cannot be revealed, such as in a preview. */
export function useReveal(): Reveal | null {
  return useContext(RevealContext);
}
