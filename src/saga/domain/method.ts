import { hasDotSegment } from './mapping.ts';
import { parseTemplate, printTemplate } from './template.ts';

/** What a step calls. Its form alone says of which kind it is: only HTTP has a path. */
export type Method =
  | Readonly<{ type: 'grpc'; service: string; method: string }>
  /** The path may hold references. */
  | Readonly<{ type: 'http'; verb: HttpVerb; path: string }>;

export type ServiceType = Method['type'];

/** Those with a body that carries the input. */
export const httpVerbs = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type HttpVerb = (typeof httpVerbs)[number];

export type ParsedMethod = Readonly<{ ok: true; method: Method }> | Readonly<{ ok: false; message: string }>;

const GRPC = /^(?<service>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(?<method>[A-Za-z_]\w*)$/;
/** What may stand in a URL's path and query as it is. */
const URL_TEXT = /^(?:[\w.~!$&'()*+,;=:@/?-]|%[\da-f]{2})*$/i;

const methodForms: Readonly<Record<ServiceType, string>> = {
  grpc: 'package.Service.Method',
  http: `a verb and a path, such as "POST /reservations"`,
};

/** Without a type, as the form says. */
export function parseMethod(text: string, type?: ServiceType): ParsedMethod {
  const looksLikeHttp = text.includes(' ') || text.startsWith('/');
  return (type ?? (looksLikeHttp ? 'http' : 'grpc')) === 'http' ? parseHttp(text) : parseGrpc(text);
}

export function printMethod(method: Method): string {
  return method.type === 'grpc' ? `${method.service}.${method.method}` : `${method.verb} ${method.path}`;
}

function parseGrpc(text: string): ParsedMethod {
  const { service, method } = GRPC.exec(text)?.groups ?? {};
  if (service === undefined || method === undefined)
    return refuse(`must be ${methodForms.grpc} for a gRPC service`);
  return { ok: true, method: { type: 'grpc', service, method } };
}

function parseHttp(text: string): ParsedMethod {
  const space = text.indexOf(' ');
  const path = text.slice(space + 1);
  if (space === -1 || !path.startsWith('/')) return refuse(`must be ${methodForms.http} for an HTTP service`);
  const word = text.slice(0, space);
  const verb = httpVerbs.find((known) => known === word);
  if (verb === undefined)
    return refuse(`must begin with ${httpVerbs.join(', ')}: these have a body that carries the input`);
  const parsed = parseTemplate(path);
  if (!parsed.ok) return parsed;
  const literals = parsed.template.filter((part) => typeof part === 'string');
  if (!literals.every((part) => URL_TEXT.test(part)))
    return refuse('has a path with characters that a URL writes with %');
  if (path.startsWith('//')) return refuse('has a path that begins with two slashes');
  if (hasDotSegment(literals.join('x'))) return refuse('has a path with . or .. between slashes');
  return { ok: true, method: { type: 'http', verb, path: printTemplate(parsed.template) } };
}

const refuse = (message: string): ParsedMethod => ({ ok: false, message });
