import type { TLocalizedValidationError } from 'typebox/error';
import type { ErrorDetail } from '../../../kernel/errors.ts';

const MAX_FIELD_LENGTH = 200;

/**
 * One detail per error. `reason` is the JSON schema keyword in snake case and stable. Values are not repeated, because
 * they may be secrets.
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

/** Schema path of the union that the error, or a branch of which the error, belongs to. */
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
    return about(error.params.additionalProperties, 'additional_properties', 'is unknown');
  // The false schema below additionalProperties: reported by its parent.
  if (error.keyword === 'boolean' && error.schemaPath.endsWith('/additionalProperties')) return [];
  if (error.keyword === 'required') return about(error.params.requiredProperties, 'required', 'is required');
  if (error.keyword === 'format') return one('format', `must be a valid ${error.params.format}`);
  if (error.keyword === 'enum') return one('enum', oneOf(error.params.allowedValues));
  return one(snakeCase(error.keyword), error.message);
}

/** A union is one detail, not one per branch; a union of constants is an enumeration. */
function unionDetail(branches: readonly TLocalizedValidationError[], root: string): ErrorDetail {
  // The list of errors is bounded: without the union's own error, branches may be missing.
  const isComplete = branches.some(({ keyword }) => keyword === 'anyOf');
  const constants = branches.flatMap((branch) =>
    branch.keyword === 'const' ? [branch.params.allowedValue] : [],
  );
  const isEnumeration = branches.every(({ keyword }) => ['const', 'type', 'anyOf'].includes(keyword));
  const paths = branches.map(({ instancePath }) => instancePath);
  const field = fieldOf(segmentsOf(paths.reduce((a, b) => (a.length <= b.length ? a : b))), root);
  return isComplete && isEnumeration && constants.length > 0
    ? { field, reason: 'enum', message: oneOf(constants) }
    : { field, reason: 'any_of', message: 'does not match any allowed form' };
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
