import { Ajv, type ErrorObject, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { messageOf } from '../../../kernel/errors.ts';
import { cleanText } from '../../../kernel/text.ts';
import type { RequestFlaw } from '../../destinations.ts';

const MAX_FLAWS = 20;
const MAX_FIELD_BYTES = 200;
const MAX_MESSAGE_BYTES = 500;

/** Unknown keywords are errors: most are misspelt, and the rule would silently not apply. */
const options: Options = {
  allErrors: true,
  strictSchema: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  logger: false,
};

/**
 * Compiles a JSON Schema, draft 2020-12 or, if `$schema` says so, draft-07, to a check of requests. Throws for a schema
 * that cannot be compiled.
 */
export function compileRequestSchema(
  schema: Readonly<Record<string, unknown>>,
): (request: unknown) => readonly RequestFlaw[] {
  if (schema['$async'] !== undefined) throw new Error('invalid JSON Schema: $async is not supported');
  const isDraft07 = typeof schema['$schema'] === 'string' && /draft-07\/schema#?$/.test(schema['$schema']);
  const ajv = isDraft07 ? new Ajv(options) : new Ajv2020(options);
  addFormats.default(ajv);
  try {
    const validate = ajv.compile(schema);
    return (request) => (validate(request) ? [] : (validate.errors ?? []).slice(0, MAX_FLAWS).map(toFlaw));
  } catch (error) {
    throw new Error(`invalid JSON Schema: ${messageOf(error)}`, { cause: error });
  }
}

/** Never contains values of the request, which may be secrets. */
function toFlaw(error: ErrorObject): RequestFlaw {
  const at = error.instancePath.split('/').slice(1).map(unescape);
  const about = (name: unknown, message: string): RequestFlaw => flaw([...at, String(name)], error, message);
  const { params } = error as Readonly<{ params: Readonly<Record<string, unknown>> }>;
  switch (error.keyword) {
    case 'required':
    case 'dependentRequired':
    case 'dependencies':
      return about(params['missingProperty'], 'is required');
    case 'additionalProperties':
      return about(params['additionalProperty'], 'is not allowed');
    case 'unevaluatedProperties':
      return about(params['unevaluatedProperty'], 'is not allowed');
    case 'enum':
      return flaw(
        at,
        error,
        `must be one of: ${(params['allowedValues'] as unknown[]).map(String).join(', ')}`,
      );
    case 'format':
      return flaw(at, error, `must be a valid ${String(params['format'])}`);
    default:
      return flaw(at, error, error.message ?? 'is not valid');
  }
}

function flaw(path: readonly string[], { keyword }: ErrorObject, message: string): RequestFlaw {
  return {
    field: cleanText(['request', ...path].join('.'), MAX_FIELD_BYTES),
    reason: keyword.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    message: cleanText(message, MAX_MESSAGE_BYTES),
  };
}

function unescape(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~');
}
