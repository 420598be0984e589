import type { IncomingHttpHeaders } from 'node:http';
import { subjectOf, type Principal } from '../../kernel/access/principal.ts';

const MAX_ACTOR_LENGTH = 255;

/**
 * The actor: the authenticated principal. Without authentication, the `x-actor` header without control characters, or
 * `anonymous`. Never a field of the body.
 */
export function actorOf(request: Readonly<{ headers: IncomingHttpHeaders; principal: Principal }>): string {
  if (request.principal.type !== 'local') return subjectOf(request.principal);
  const header = request.headers['x-actor'];
  if (typeof header !== 'string') return 'anonymous';
  const cleaned = decodeHeaderText(header)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_ACTOR_LENGTH)
    .replace(/[\ud800-\udbff]$/, '')
    .trimEnd();
  return cleaned === '' ? 'anonymous' : cleaned;
}

/** Node decodes headers as Latin-1, but most clients send UTF-8. */
function decodeHeaderText(header: string): string {
  const bytes = Buffer.from(header, 'latin1');
  const text = bytes.toString('utf8');
  return text.includes('\ufffd') ? header : text;
}
