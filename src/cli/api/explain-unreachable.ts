import { codeOf, messageOf } from '../../kernel/errors.ts';

/** Why no connection came about, and what to do. */
export function explainUnreachable(error: unknown, url: URL): string {
  const server = originOf(url);
  const code = codeOf(error) ?? '';
  if (code === 'ECONNREFUSED')
    return `nothing listens at ${server}: start the server with \`redrive serve\` (or \`redrive dev\`), or name another one with --url or REDRIVE_URL`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `the host of ${server} is not known: check --url or REDRIVE_URL`;
  if (/CERT|SIGNED|UNABLE_TO_|ERR_TLS/.test(code))
    return `the certificate of ${server} is not trusted (${messageOf(error)}): name its authority in NODE_EXTRA_CA_CERTS`;
  if (code === 'EPROTO') return `${server} does not speak TLS: try http:// instead of https://`;
  return `${server} cannot be reached (${messageOf(error)}): check --url or REDRIVE_URL, and the network between`;
}

/** Why no answer came although the request went out. */
export function explainLostAnswer(error: unknown, url: URL, method: string): string {
  const server = originOf(url);
  const code = codeOf(error) ?? '';
  if (code.startsWith('HPE_')) return `${server} does not speak HTTP: check --url or REDRIVE_URL`;
  const lost = `${server} took the request and did not answer (${messageOf(error)})`;
  return method === 'GET' ? lost : `${lost}: it may or may not have been done, so look before you try again`;
}

/** Without the password that a URL may carry. */
function originOf({ protocol, host, pathname }: URL): string {
  const folder = pathname.replace(/\/api\/v1\/.*$/, '').replace(/\/$/, '');
  return `${protocol}//${host}${folder}`;
}
