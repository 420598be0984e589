import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';

/** What a person's browser does: it keeps cookies, follows redirects, and says where a request comes from. */
export type Browser = Readonly<{
  /** As by a link or the address bar; follows redirects, at most until `until` matches the address. */
  open(url: string, options?: Readonly<{ until?: RegExp; accept?: string }>): Promise<Page>;
  /** Sends the form of a page as the user would, with these fields besides the hidden ones; follows redirects. */
  submit(page: Page, fields?: Readonly<Record<string, string>>): Promise<Page>;
  /** As a script of a page of this origin does. */
  fetch(url: string, options?: FetchOptions): Promise<Page>;
  /** By name; a real browser shows them to nobody. */
  cookies: Map<string, string>;
  /** All headers `set-cookie` that came. */
  received: string[];
}>;

export type FetchOptions = Readonly<{
  method?: string;
  body?: string;
  headers?: Readonly<Record<string, string>>;
}>;

export type Page = Readonly<{
  url: string;
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  json: unknown;
}>;

const maxRedirects = 20;

let opened = 0;

/** Each has an address of its own, as `server.trusted_proxies` lets it: limits of an address are not those of a test. */
export function openBrowser(): Browser {
  opened += 1;
  const address = `10.${(opened >> 16) & 255}.${(opened >> 8) & 255}.${opened & 255}`;
  const cookies = new Map<string, string>();
  const received: string[] = [];

  const send = async (url: string, method: string, headers: object, body?: string): Promise<Page> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const from = { 'x-forwarded-for': address, ...(cookie === '' ? {} : { cookie }) };
    const page = await request(url, method, { ...headers, ...from }, body);
    for (const line of page.headers['set-cookie'] ?? []) {
      received.push(line);
      keep(cookies, line, url);
    }
    return page;
  };

  const follow = async (first: Page, from: string, until?: RegExp, accept = 'text/html'): Promise<Page> => {
    let page = first;
    let at = from;
    for (let left = maxRedirects; left > 0; left -= 1) {
      const { location } = page.headers;
      if (location === undefined || page.status < 300 || page.status > 399) return page;
      const next = new URL(location, at).href;
      if (until?.test(next) === true) return { ...page, url: next };
      const site = new URL(next).origin === new URL(from).origin ? 'none' : 'cross-site';
      page = await send(next, 'GET', { accept, ...navigation(site) });
      at = next;
    }
    throw new Error(`too many redirects, last ${at}`);
  };

  return {
    cookies,
    received,
    open: async (url, { until, accept = 'text/html' } = {}) =>
      follow(await send(url, 'GET', { accept, ...navigation('none') }), url, until, accept),
    async submit(page, fields = {}) {
      const [, action = ''] = /<form[^>]* action="([^"]+)"/.exec(page.text) ?? [];
      const hidden = [...page.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)];
      const body = new URLSearchParams({
        ...Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value])),
        ...fields,
      });
      const url = new URL(action, page.url).href;
      const headers = { ...navigation('same-origin'), 'content-type': 'application/x-www-form-urlencoded' };
      return follow(await send(url, 'POST', headers, body.toString()), url);
    },
    fetch: (url, { method = 'GET', body, headers = {} } = {}) =>
      send(
        url,
        method,
        {
          'sec-fetch-site': 'same-origin',
          'sec-fetch-mode': 'cors',
          'sec-fetch-dest': 'empty',
          ...(method === 'GET' ? {} : { origin: new URL(url).origin, 'x-redrive-console': '1' }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body,
      ),
  };
}

const navigation = (site: string) => ({
  'sec-fetch-site': site,
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
});

/** Refuses what browsers refuse: `Secure` without TLS, and `__Host-` without its conditions. */
function keep(cookies: Map<string, string>, line: string, url: string): void {
  const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
  const name = pair.slice(0, pair.indexOf('='));
  const has = (attribute: RegExp): boolean => attributes.some((one) => attribute.test(one));
  const isSecure = has(/^secure$/i);
  if (isSecure && !url.startsWith('https:')) return;
  if (name.startsWith('__Host-') && !(isSecure && has(/^path=\/$/i) && !has(/^domain=/i))) return;
  const expires = attributes.find((one) => /^expires=/i.test(one))?.slice('expires='.length);
  const isGone = has(/^max-age=0$/i) || (expires !== undefined && new Date(expires).getTime() <= Date.now());
  if (isGone) cookies.delete(name);
  else cookies.set(name, pair.slice(pair.indexOf('=') + 1));
}

function request(url: string, method: string, headers: object, body?: string): Promise<Page> {
  return new Promise((resolve, reject) => {
    const framing = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const sent = httpRequest(
      url,
      { method, headers: { ...headers, ...framing }, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = response.headers['content-type']?.startsWith('application/json') === true;
          const json: unknown = isJson && text !== '' ? JSON.parse(text) : undefined;
          resolve({ url, status: response.statusCode ?? 0, headers: response.headers, text, json });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
