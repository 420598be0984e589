import { use } from 'react';
import type { Catalogue, Texts, TextsLike } from '../../lib/text/catalogue.ts';
import { usePreferences } from '../preferences/preferences.tsx';

/** The texts of a catalogue in the chosen language. Suspends while another language than English is loaded. */
export function useText<Of extends Texts>(catalogue: Catalogue<Of>): TextsLike<Of> {
  const [{ language }] = usePreferences();
  // English is there at once; nothing needs to wait for it.
  return language === 'en' ? (catalogue.en as unknown as TextsLike<Of>) : use(catalogue.load(language));
}
