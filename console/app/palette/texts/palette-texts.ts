import { defineCatalogue } from '../../../lib/text/catalogue.ts';
import { en } from './en.ts';

export const paletteTexts = defineCatalogue(en, async () => (await import('./ja.ts')).ja);
