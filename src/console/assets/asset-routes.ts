import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AppError } from '../../kernel/errors.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { pickEncoding } from './built-assets.ts';
import type { ConsoleState } from './console-build.ts';
import { policyFor, renderNotice, renderPage, type PageFacts } from './render-page.ts';

/** The first segments of the console's pages. Below any other path there is no HTML. */
const pageSegments = ['inbox', 'dlq', 'outbox', 'jobs', 'sagas', 'activity', 'system'] as const;

const refreshS = 2;
/** The page reads its own query. */
const AnyQuery = Type.Object({});
const options = { config: { access: 'public' }, schema: { hide: true } } as const;

export type AssetRouteDeps = Readonly<{ state: () => ConsoleState; facts: PageFacts }>;

/** The page under every path that the console shows, and its files. */
export function addAssetRoutes(app: HttpApp, { state, facts }: AssetRouteDeps): void {
  const sendPage = (_request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const nonce = randomBytes(16).toString('base64');
    const now = state();
    return reply
      .code(now.kind === 'ready' ? 200 : 503)
      .headers({
        'content-security-policy': policyFor(nonce),
        'cache-control': 'no-store',
        'x-robots-tag': 'noindex',
        'referrer-policy': 'no-referrer',
      })
      .type('text/html; charset=utf-8')
      .send(htmlFor(now, facts, nonce));
  };
  for (const path of ['/', ...pageSegments.flatMap((segment) => [`/${segment}`, `/${segment}/*`])])
    app.get(path, { ...options, schema: { hide: true, querystring: AnyQuery } }, sendPage);

  app.get<{ Params: { '*': string } }>('/assets/*', options, (request, reply) => {
    const now = state();
    const asset = now.kind === 'ready' ? now.assets.files.get(`/assets/${request.params['*']}`) : undefined;
    if (asset === undefined) throw new AppError('SYS_CONSOLE_NOT_FOUND', 'not_found', 'no such file');
    const encoding = pickEncoding(asset, request.headers['accept-encoding']);
    return reply
      .headers({
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'accept-encoding',
        ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }),
      })
      .type(asset.type)
      .send(asset.bytes.get(encoding));
  });
}

function htmlFor(now: ConsoleState, facts: PageFacts, nonce: string): string {
  switch (now.kind) {
    case 'ready':
      return renderPage(now.assets, facts, nonce);
    case 'building':
      return renderNotice('Redrive', 'Building the console. This page reloads by itself.', refreshS);
    case 'failed':
      return renderNotice('The console could not be built', `${now.reason}\n\nThe API works: /docs/`, null);
  }
}
