import { defineCatalogue } from '../../../../lib/text/catalogue.ts';
import { en } from './en.ts';

export const relatedTexts = defineCatalogue(en, async () => (await import('./ja.ts')).ja);
