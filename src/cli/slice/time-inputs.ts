import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../../kernel/duration.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import type { Input } from './define-command.ts';

type TimeFields = Readonly<{ since?: string; until?: string; name?: string }>;

/** `--since` and `--until`, the same for every list. They take a time, or how long ago: `2h`. */
export function timeInputs(what: string, { since, until, name = '' }: TimeFields = {}): readonly Input[] {
  return [
    {
      flags: `--${name}since <time>`,
      text: `${what} at or after this time (ISO 8601 with zone, or how long ago: 2h)`,
      parse: instant,
      ...(since === undefined ? {} : { field: since }),
    },
    {
      flags: `--${name}until <time>`,
      text: `${what} before this time`,
      parse: instant,
      ...(until === undefined ? {} : { field: until }),
    },
  ];
}

/** The server checks the rest of what a time must be. */
function instant(text: string): string {
  const agoMs = parseDuration(text);
  if (agoMs !== undefined) {
    const at = new Date(Date.now() - agoMs);
    if (Number.isNaN(at.getTime())) throw new InvalidArgumentError('That is too long ago.');
    return formatTimestamp(at);
  }
  if (!/^\d{4}-/.test(text))
    throw new InvalidArgumentError(
      'Must be a time, such as 2026-02-20T00:00:00Z, or how long ago, such as 30m, 2h or 7d.',
    );
  return text;
}
