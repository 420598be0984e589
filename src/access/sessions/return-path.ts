const maxLength = 2000;

/**
 * The path to go to after the login, or undefined if it is not one of ours. Browsers read `//host`, `/\host` and paths
 * with tabs or line breaks as other hosts; a path below `/auth` would begin another login.
 */
export function readReturnPath(text: string): string | undefined {
  if (text.length > maxLength || !/^\/(?![/\\])[!-~]*$/.test(text) || text.includes('\\')) return undefined;
  const url = URL.parse(text, 'http://server.invalid');
  if (url === null || url.origin !== 'http://server.invalid') return undefined;
  // After dot segments are resolved, a path may begin with two slashes.
  if (url.pathname.startsWith('//') || /^\/auth(\/|$)/i.test(decoded(url.pathname))) return undefined;
  return url.pathname + url.search + url.hash;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
