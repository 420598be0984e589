import type { Config } from '../config/config.ts';
import { acceptsHost } from '../config/formats/accepts-host.ts';
import type { OriginRules } from '../platform/http/guards/origin-guard.ts';

/** Which pages in browsers are ours. */
export function originRules({ server, auth }: Config, cookiePrefix: string | null): OriginRules {
  return {
    acceptsHost: acceptsHost(server),
    mode: auth.mode,
    cookiePrefix,
    publicOrigin: server.publicUrl === undefined ? null : new URL(server.publicUrl).origin,
  };
}
