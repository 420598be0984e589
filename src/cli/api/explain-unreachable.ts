import { codeOf, messageOf } from '../../kernel/errors.ts';

/** Why the connection failed, and what to do. */
export function explainUnreachable(error: unknown, url: URL): string {
  const server = originOf(url);
  const code = codeOf(error) ?? '';
  if (code === 'ECONNREFUSED')
    return `nothing listens at ${server}: start the server with \`redrive serve\` (or \`redrive dev\`), or set --url or REDRIVE_URL to another one`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `unknown host in ${server}: check --url or REDRIVE_URL`;
  if (/CERT|SIGNED|UNABLE_TO_|ERR_TLS/.test(code))
    return `the certificate of ${server} is not trusted (${messageOf(error)}): set NODE_EXTRA_CA_CERTS to the file with its CA certificate`;
  if (code === 'EPROTO') return `${server} does not speak TLS: try http:// instead of https://`;
  return `cannot reach ${server} (${messageOf(error)}): check --url or REDRIVE_URL, and the network`;
}

/** Why there is no whole answer to a request that was sent. */
export function explainLostAnswer(
  error: unknown,
  { url, method, isAnswering }: Readonly<{ url: URL; method: string; isAnswering: boolean }>,
): string {
  const server = originOf(url);
  const code = codeOf(error) ?? '';
  if (code.startsWith('HPE_')) return `${server} does not speak HTTP: check --url or REDRIVE_URL`;
  const what = isAnswering ? 'did not finish its answer' : 'accepted the request but did not answer';
  const lost = `${server} ${what} (${messageOf(error)})`;
  return method === 'GET' ? lost : `${lost}: it may or may not have been done, check before you retry`;
}

/** Without the password in the URL. */
function originOf({ protocol, host, pathname }: URL): string {
  const folder = pathname.replace(/\/api\/v1\/.*$/, '').replace(/\/$/, '');
  return `${protocol}//${host}${folder}`;
}
