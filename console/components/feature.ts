import type { AnyRoute } from '@tanstack/react-router';
import type { LucideIcon } from 'lucide-react';
import type { Catalogue } from '../lib/text/catalogue.ts';

/** What a feature gives to the frame. It has one place in the navigation, and tabs that are links. */
export type Feature = Readonly<{
  /** The first segment of its paths. */
  segment: string;
  icon: LucideIcon;
  /** The keys `g` and this letter go to its home. */
  key: string;
  /** The path to which its place in the navigation leads. */
  home: string;
  /** Paths of its tabs, in order; none if it has only one list. */
  tabs: readonly string[];
  /** The name of the feature in each language. */
  texts: Catalogue<Readonly<{ area: string }>>;
  routes(root: AnyRoute): readonly AnyRoute[];
}>;
