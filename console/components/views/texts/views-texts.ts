import { defineCatalogue } from '../../../lib/text/catalogue.ts';
import { en } from './en.ts';

export const viewsTexts = defineCatalogue(en, async () => (await import('./ja.ts')).ja);
