import type { AnyRoute } from '@tanstack/react-router';
import type { LucideIcon } from 'lucide-react';
import type { Catalogue, Texts } from '../lib/text/catalogue.ts';

/** `area` names the feature in the navigation. */
export type FeatureTexts = Texts & Readonly<{ area: string }>;

/** A page that is one of several at the top of a feature. Tabs are links. */
export type Tab<Name extends string = string> = Readonly<{
  path: string;
  /** The text that names the tab. */
  title: Name;
}>;

/**
 * What a feature gives to the frame. It has one place in the navigation, and tabs that are links. Features do not import
 * each other: they meet in paths.
 */
export type Feature<Name extends string = string> = Readonly<{
  /** The first segment of its paths, and the slice whose events it shows. */
  segment: string;
  icon: LucideIcon;
  /** The keys `g` and this letter go to its home. */
  key: string;
  /** The path to which its place in the navigation leads. */
  home: string;
  /** In order; none if it has only one list. */
  tabs: readonly Tab<Name>[];
  texts: Catalogue<FeatureTexts>;
  routes(root: AnyRoute): readonly AnyRoute[];
}>;

/** Checks that every tab has a text. */
export function defineFeature<Of extends FeatureTexts>(
  texts: Catalogue<Of>,
  feature: Omit<Feature<TitlesOf<Of>>, 'texts'>,
): Feature {
  return { ...feature, texts };
}

type TitlesOf<Of extends Texts> = {
  [Name in keyof Of & string]: Of[Name] extends string ? Name : never;
}[keyof Of & string];
