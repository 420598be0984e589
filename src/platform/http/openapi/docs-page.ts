import { createHash } from 'node:crypto';
import { fastify } from 'fastify';
import type { HttpApp } from '../http-app.ts';

const SCRIPT_MAX_AGE_S = 3600;

/**
 * The page uses only this server. The policy enforces it: the browser blocks whatever the script would fetch elsewhere
 * (fonts, a proxy, usage statistics), and every script in the page but those that were there when it was rendered. The
 * script writes its styles into the page.
 */
const policyFor = (page: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' ${hashesOfScripts(page).join(' ')}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

type Docs = Readonly<{ page: string; policy: string; script: string }>;

/** The rendered API reference at /docs. */
export function addDocsPage(app: HttpApp): void {
  let docs: Promise<Docs> | undefined;
  // 4 MB of script: loaded when the page is first opened, not at every start.
  const loaded = () => (docs ??= loadDocs());

  const options = { config: { access: 'authenticated' }, schema: { hide: true } } as const;
  app.get('/docs', options, (_request, reply) => reply.redirect('/docs/', 301));
  app.get('/docs/', options, async (_request, reply) => {
    const { page, policy } = await loaded();
    return reply.header('content-security-policy', policy).type('text/html; charset=utf-8').send(page);
  });
  app.get('/docs/js/scalar.js', options, async (_request, reply) => {
    reply.header('cache-control', `max-age=${SCRIPT_MAX_AGE_S}`);
    const { script } = await loaded();
    return reply.type('application/javascript; charset=utf-8').send(script);
  });
}

/**
 * The plugin runs in an instance that no request reaches, because its handlers trust the Host header and fail on a
 * hostile one. Its content never changes, so it is read once.
 */
async function loadDocs(): Promise<Docs> {
  const { default: apiReference } = await import('@scalar/fastify-api-reference');
  const renderer = fastify();
  await renderer.register(apiReference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      pageTitle: 'Redrive API',
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      agent: { disabled: true },
      mcp: { disabled: true },
      showDeveloperTools: 'never',
    },
  });
  const { body: page } = await renderer.inject('/docs/');
  const script = await renderer.inject('/docs/js/scalar.js');
  await renderer.close();
  return { page, policy: policyFor(page), script: script.body };
}

/** As a policy names them. */
function hashesOfScripts(page: string): readonly string[] {
  return [...page.matchAll(/<script\b(?![^>]*\bsrc=)[^>]*>([^]*?)<\/script>/g)].map(
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );
}
