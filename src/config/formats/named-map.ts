import { Type, type TSchema } from 'typebox';

import { text, type About } from './value.ts';

export const MAX_ENTRIES = 1000;

/** A map whose keys the user chooses. */
export const mapOf = <T extends TSchema>(
  names: TSchema & { pattern?: string },
  entry: T,
  about: About = {},
) => Type.Record(Type.String({ pattern: names.pattern ?? '' }), entry, { names, ...about });

/** The name of something that users make; `whats` are such things. */
export const chosenName = (whats: string, about: About = {}) =>
  text({
    what: 'a name of 1 to 100 characters of a-z, 0-9, _, . and -, beginning with a letter',
    pattern: '^[a-z][a-z\\d_.-]{0,99}$',
    reason: (name) =>
      typeof name === 'string' && name.startsWith('_')
        ? `names that begin with _ are reserved for ${whats} that the system makes itself`
        : 'a name must be 1 to 100 characters of a-z, 0-9, _, . and -, beginning with a letter',
    ...about,
  });
