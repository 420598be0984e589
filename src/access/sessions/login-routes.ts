import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { subjectOf, type Principal } from '../../kernel/access/principal.ts';
import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { actOf } from '../../platform/http/act-of.ts';
import { errorAnswer } from '../../platform/http/errors/error-answer.ts';
import type { OnDenied } from '../../platform/http/errors/denied-request.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, nullable } from '../../platform/http/schema-parts.ts';
import type { TokenClaims } from '../tokens/verify-token.ts';
import { noticePolicy, renderLoginNotice } from './login-notice.ts';
import type { Cookies, Logins, SetCookie } from './logins.ts';
import type { Provider } from './provider.ts';
import { readReturnPath } from './return-path.ts';
import type { CookieNames } from './session-cookies.ts';
import type { Sessions } from './sessions.ts';

export type LoginParts = Readonly<{
  logins: Logins;
  sessions: Sessions;
  provider: Pick<Provider, 'logoutUrl'>;
  names: CookieNames;
  /** The path of the public URL, without a final slash. */
  pathPrefix: string;
  principalOf: (claims: TokenClaims) => Principal;
}>;

const hidden = { config: { access: 'public' }, schema: { hide: true } } as const;
const maxQueryLength = 8192;

/** Logins in the console, for browsers. `parts` is null if nobody can log in. */
export function addLoginRoutes(app: HttpApp, parts: LoginParts | null, onFailed: OnDenied): void {
  const known = { parts, onFailed };
  const LoginQuery = Type.Object({ return_to: Type.Optional(Type.String({ maxLength: 2000 })) }, closed);
  app.get(
    '/auth/login',
    { ...hidden, schema: { hide: true, querystring: LoginQuery } },
    async (request, reply) =>
      forBrowsers(
        request,
        reply,
        { ...known, returnTo: request.query.return_to },
        async ({ logins, names }) => {
          const returnTo = readReturnPath(request.query.return_to ?? '/');
          if (returnTo === undefined)
            throw new AppError(
              'SYS_AUTH_RETURN_PATH',
              'validation',
              'return_to must be a path of this server',
            );
          const { url, cookie } = await logins.begin(cookiesOf(request), returnTo);
          return setCookie(reply, cookie, names).redirect(url.href, 302);
        },
      ),
  );
  // The provider chooses the parameters.
  app.get(
    '/auth/callback',
    { ...hidden, schema: { hide: true, querystring: Type.Object({}) } },
    async (request, reply) =>
      forBrowsers(request, reply, known, (found) => finishLogin(request, reply, found)),
  );
  addLogoutRoute(app, parts);
}

async function finishLogin(
  request: FastifyRequest,
  reply: FastifyReply,
  { logins, sessions, names, pathPrefix, principalOf }: LoginParts,
): Promise<FastifyReply> {
  const search = queryOf(request);
  if (search.length > maxQueryLength)
    throw new AppError('SYS_AUTH_LOGIN_FAILED', 'validation', 'the query of the provider is too long');
  const cookies = cookiesOf(request);
  const { claims, returnTo, cookie } = await logins.finish(cookies, search);
  const reference = await sessions.begin(
    claims,
    cookies[names.session],
    actBy(principalOf(claims), request, 'login'),
  );
  setCookie(reply, cookie, names);
  // Until the browser ends; the server ends it earlier.
  reply.setCookie(names.session, reference, cookieOptions(names));
  return reply.redirect(`${pathPrefix}${returnTo}`, 303);
}

function addLogoutRoute(app: HttpApp, parts: LoginParts | null): void {
  app.post(
    '/auth/logout',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'logOut',
        summary: 'End the session of the browser',
        description:
          'Takes effect at once, also on other replicas. Without a session nothing happens. `logout_url` leads to the page where the provider ends its own session; null if it has none.',
        tags: ['access'],
        response: {
          200: Type.Object({
            success: Type.Boolean({ examples: [true] }),
            message: Type.String({ examples: ['logged out'] }),
            logout_url: nullable(Type.String({ examples: ['https://idp.example.com/realms/main/logout'] })),
          }),
        },
      },
    },
    async (request, reply) => {
      const message = 'logged out';
      if (parts === null) return reply.send({ success: true, message, logout_url: null });
      const { sessions, names, provider } = parts;
      const reference = cookiesOf(request)[names.session];
      if (reference === undefined) return reply.send({ success: true, message, logout_url: null });
      const claims = await sessions.verify(reference, false);
      if (claims !== null) await sessions.end(reference, actBy(parts.principalOf(claims), request, 'logout'));
      reply.clearCookie(names.session, cookieOptions(names));
      return reply.send({ success: true, message, logout_url: await provider.logoutUrl() });
    },
  );
}

type BrowserAsked = Readonly<{
  parts: LoginParts | null;
  onFailed: OnDenied;
  /** Where this login was to lead, if the request says so. */
  returnTo?: string | undefined;
}>;

/** Leads where the login that failed was to lead. */
function loginAddress({ pathPrefix }: LoginParts, path: string): string {
  const returnTo = readReturnPath(path) ?? '/';
  return `${pathPrefix}/auth/login?return_to=${encodeURIComponent(returnTo)}`;
}

function queryOf({ raw }: FastifyRequest): string {
  return new URL(raw.url ?? '', 'http://server.invalid').search;
}

/** A person reads what goes wrong here, so it is a page for clients that accept HTML. */
async function forBrowsers(
  request: FastifyRequest,
  reply: FastifyReply,
  { parts, onFailed, returnTo }: BrowserAsked,
  answer: (parts: LoginParts) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
  if (parts === null)
    throw new AppError('SYS_ACCESS_NOT_FOUND', 'not_found', 'logins are not configured: see auth.oidc');
  try {
    return await answer(parts);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const isPage = request.headers.accept?.includes('text/html') === true;
    // A refusal that is thrown is noted like any other one.
    if (error.code === 'SYS_AUTH_LOGIN_FAILED' || (error.kind === 'forbidden' && isPage))
      onFailed(request, error.code);
    if (!isPage) throw error;
    const { status, headers } = errorAnswer(error, 'access', request.id);
    request.log.warn({ err: error, code: error.code }, 'login failed');
    const to = (await parts.logins.returnPath(cookiesOf(request), queryOf(request))) ?? returnTo ?? '/';
    return reply
      .code(status)
      .headers({ ...headers, 'content-security-policy': noticePolicy })
      .type('text/html; charset=utf-8')
      .send(renderLoginNotice(error.message, loginAddress(parts, to)));
  }
}

function cookiesOf({ server, headers }: FastifyRequest): Cookies {
  return server.parseCookie(headers.cookie ?? '');
}

function setCookie(
  reply: FastifyReply,
  { name, value, maxAgeS }: SetCookie,
  names: CookieNames,
): FastifyReply {
  return reply.setCookie(name, value, { ...cookieOptions(names), maxAge: maxAgeS });
}

/** No script can read it, and of other sites only a link sends it. */
function cookieOptions({ isSecure }: CookieNames) {
  return { path: '/', httpOnly: true, sameSite: 'lax', secure: isSecure } as const;
}

/** The route is public: the caller is known by what the login or the session says. */
function actBy(principal: Principal, request: FastifyRequest, what: 'login' | 'logout'): Act {
  const { name, type, roles } = principal;
  const actor = { type, id: subjectOf(principal), name, roles };
  return { ...actOf(request), actor, action: `access:sessions:${what}` };
}
