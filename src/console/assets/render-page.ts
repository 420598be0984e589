import type { BuiltAssets } from './built-assets.ts';

/** What the page tells the console before its first request. */
export type PageFacts = Readonly<{
  /** The path of `public_url`, without a final slash. */
  prefix: string;
  environment: string;
  /** Where to log in; null without sessions. */
  login: string | null;
}>;

const icon =
  'data:image/svg+xml,' +
  encodeURIComponent(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0858DE"/><path d="M5 12V4h3.5a2.5 2.5 0 0 1 0 5H5m3 0 3 3" fill="none" stroke="#fff" stroke-width="1.7"/></svg>',
  );

/** The same for every page: the console renders what the path names. */
export function renderPage({ entry }: BuiltAssets, facts: PageFacts, nonce: string): string {
  const url = (path: string): string => escapeHtml(facts.prefix + path);
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="robots" content="noindex"><meta name="color-scheme" content="light dark">',
    `<meta property="csp-nonce" nonce="${nonce}"><title>Redrive</title>`,
    `<link rel="icon" href="${icon}">`,
    ...entry.styles.map((path) => `<link rel="stylesheet" href="${url(path)}">`),
    ...entry.preloads.map((path) => `<link rel="modulepreload" href="${url(path)}">`),
    `<script type="module" src="${url(entry.script)}"></script></head><body><div id="root"></div>`,
    '<noscript>The console of Redrive needs JavaScript. The command line does not: npx redrive --help</noscript>',
    `<script type="application/json" id="page-facts">${escapeJson(facts)}</script>`,
    '</body></html>\n',
  ].join('\n');
}

/** A page without scripts, while there is no build. */
export function renderNotice(title: string, text: string, refreshS: number | null): string {
  const refresh = refreshS === null ? '' : `<meta http-equiv="refresh" content="${refreshS}">`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">${refresh}<title>Redrive</title></head>
<body><h1>${escapeHtml(title)}</h1><pre>${escapeHtml(text)}</pre></body></html>
`;
}

export function policyFor(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Ends neither the element nor the string. */
function escapeJson(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', String.raw`\u003c`);
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
