import { hasDotSegment } from './mapping.ts';
import { parseTemplate, printTemplate } from './template.ts';

/** What a step calls. The form determines the type: only HTTP methods have a path. */
export type Method =
  | Readonly<{ type: 'grpc'; service: string; method: string }>
  /** The path may hold references. */
  | Readonly<{ type: 'http'; verb: HttpVerb; path: string }>;

export type ServiceType = Method['type'];

/** Verbs with a body, which carries the input. */
export const callVerbs = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;
/** A poll must not change anything. */
export const pollVerbs = ['GET'] as const;
export type HttpVerb = (typeof callVerbs | typeof pollVerbs)[number];

export type ParsedMethod = Readonly<{ ok: true; method: Method }> | Readonly<{ ok: false; message: string }>;

const GRPC = /^(?<service>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(?<method>[A-Za-z_]\w*)$/;
/** Characters that need no escaping in a URL's path and query. */
const URL_TEXT = /^(?:[\w.~!$&'()*+,;=:@/?-]|%[\da-f]{2})*$/i;

const methodForms: Readonly<Record<ServiceType, string>> = {
  grpc: 'package.Service.Method',
  http: `a verb and a path, such as "POST /reservations"`,
};

/** Without a type, the form of the text decides. */
export function parseMethod(
  text: string,
  type?: ServiceType,
  verbs: readonly HttpVerb[] = callVerbs,
): ParsedMethod {
  const looksLikeHttp = text.includes(' ') || text.startsWith('/');
  return (type ?? (looksLikeHttp ? 'http' : 'grpc')) === 'http' ? parseHttp(text, verbs) : parseGrpc(text);
}

/** Parses a method of a workflow that was checked before. */
export function parseCheckedMethod(text: string, type?: ServiceType): ParsedMethod {
  return parseMethod(text, type, [...callVerbs, ...pollVerbs]);
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

function parseHttp(text: string, verbs: readonly HttpVerb[]): ParsedMethod {
  const space = text.indexOf(' ');
  const path = text.slice(space + 1);
  if (space === -1 || !path.startsWith('/')) return refuse(`must be ${methodForms.http} for an HTTP service`);
  const word = text.slice(0, space);
  const verb = verbs.find((known) => known === word);
  if (verb === undefined) return refuse(`must begin with ${verbs.join(', ')}${whyVerbs(verbs)}`);
  const parsed = parseTemplate(path);
  if (!parsed.ok) return parsed;
  const literals = parsed.template.filter((part) => typeof part === 'string');
  if (!literals.every((part) => URL_TEXT.test(part)))
    return refuse('has a path with characters that must be percent-encoded');
  if (path.startsWith('//')) return refuse('has a path that begins with two slashes');
  if (hasDotSegment(literals.join('x'))) return refuse('has a path with a . or .. segment');
  return { ok: true, method: { type: 'http', verb, path: printTemplate(parsed.template) } };
}

function whyVerbs(verbs: readonly HttpVerb[]): string {
  return verbs.includes('GET') ? '; a poll has no body' : '; these carry the input as body';
}

const refuse = (message: string): ParsedMethod => ({ ok: false, message });
