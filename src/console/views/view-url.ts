const pages: ReadonlySet<string> = new Set(['inbox', 'dlq', 'outbox', 'jobs', 'sagas', 'activity', 'system']);

/** Whether it is the path of a page of the console, and nothing that a browser could take for another address. */
export function isPageOfConsole(url: string): boolean {
  if (!/^\/[^\s\\\p{Cc}]*$/u.test(url) || !URL.canParse(url, 'http://console')) return false;
  const { origin, pathname } = new URL(url, 'http://console');
  return origin === 'http://console' && pages.has(pathname.split('/')[1] ?? '');
}
