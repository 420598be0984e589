import type { TLocalizedValidationError } from 'typebox/error';
import type { ErrorDetail } from '../../kernel/errors.ts';

const MAX_FIELD_LENGTH = 200;

/**
 * One detail for each thing wrong with the input, in words that a caller can act on. `reason` is the JSON schema
 * keyword in snake case and never changes; values are not repeated, for they may be secrets.
 */
export function validationDetails(
  errors: readonly TLocalizedValidationError[],
  root: string,
): readonly ErrorDetail[] {
  const byUnion = Map.groupBy(errors, unionOf);
  return errors.flatMap((error) => {
    const union = unionOf(error);
    if (union === undefined) return detailsOf(error, root);
    const branches = byUnion.get(union) ?? [];
    return branches[0] === error ? [unionDetail(branches, root)] : [];
  });
}

/** Where in the schema the union stands that this error is about, or about a branch of. */
function unionOf({ keyword, schemaPath }: TLocalizedValidationError): string | undefined {
  return /^(.*?)\/anyOf\//.exec(`${schemaPath}${keyword === 'anyOf' ? '/anyOf/' : ''}`)?.[1];
}

function detailsOf(error: TLocalizedValidationError, root: string): readonly ErrorDetail[] {
  const at = segmentsOf(error.instancePath);
  const about = (names: readonly string[], reason: string, message: string): readonly ErrorDetail[] =>
    names.map((name) => ({ field: fieldOf([...at, name], root), reason, message }));
  const one = (reason: string, message: string): readonly ErrorDetail[] => [
    { field: fieldOf(at, root), reason, message },
  ];
  if (error.keyword === 'additionalProperties')
    return about(error.params.additionalProperties, 'additional_properties', 'is not known here');
  // The false schema below additionalProperties: its parent has told it.
  if (error.keyword === 'boolean' && error.schemaPath.endsWith('/additionalProperties')) return [];
  if (error.keyword === 'required') return about(error.params.requiredProperties, 'required', 'is required');
  if (error.keyword === 'format') return one('format', `must be a valid ${error.params.format}`);
  if (error.keyword === 'enum') return one('enum', oneOf(error.params.allowedValues));
  return one(snakeCase(error.keyword), error.message);
}

/** A union is told once, not branch by branch; and a union of constants is an enumeration. */
function unionDetail(branches: readonly TLocalizedValidationError[], root: string): ErrorDetail {
  // The list of errors is cut at some length: without the union's own error, branches may be missing.
  const isComplete = branches.some(({ keyword }) => keyword === 'anyOf');
  const constants = branches.flatMap((branch) =>
    branch.keyword === 'const' ? [branch.params.allowedValue] : [],
  );
  const isEnumeration = branches.every(({ keyword }) => ['const', 'type', 'anyOf'].includes(keyword));
  const paths = branches.map(({ instancePath }) => instancePath);
  const field = fieldOf(segmentsOf(paths.reduce((a, b) => (a.length <= b.length ? a : b))), root);
  return isComplete && isEnumeration && constants.length > 0
    ? { field, reason: 'enum', message: oneOf(constants) }
    : { field, reason: 'any_of', message: 'has none of the allowed forms' };
}

function oneOf(allowed: readonly unknown[]): string {
  return `must be one of: ${allowed.map(String).join(', ')}`;
}

function segmentsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function fieldOf(segments: readonly string[], root: string): string {
  return segments.length === 0 ? root : segments.join('.').slice(0, MAX_FIELD_LENGTH).toWellFormed();
}

function snakeCase(keyword: string): string {
  return keyword.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/^~/, '');
}
