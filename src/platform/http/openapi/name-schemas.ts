import { isDeepStrictEqual } from 'node:util';
import { isObject, mapObjects, type Schema } from './schema-walk.ts';

type Named = Readonly<{ paths: unknown; schemas: Readonly<Record<string, Schema>> }>;

/**
 * Moves every schema with a title to the components, under that title, and refers to it. Throws if two different
 * schemas have the same title.
 */
export function nameSchemas(paths: unknown): Named {
  const schemas = new Map<string, Schema>();
  const named = mapObjects(paths, (found) => {
    const { title } = found;
    if (typeof title !== 'string' || !isSchema(found)) return found;
    const known = schemas.get(title);
    if (known !== undefined && !isDeepStrictEqual(known, found))
      throw new Error(`two different schemas have the title ${title}`);
    schemas.set(title, found);
    return { $ref: `#/components/schemas/${title}` };
  });
  const sorted = [...schemas].sort(([a], [b]) => (a < b ? -1 : 1));
  return { paths: named, schemas: Object.fromEntries(sorted) };
}

/**
 * Routes validate some fields in their handlers, where an error can say more. What they check is in the schema's
 * `x-checked`, and replaces the looser keywords in the document.
 */
export function applyChecked(paths: unknown): unknown {
  return mapObjects(paths, ({ 'x-checked': checked, ...schema }) =>
    isObject(checked) ? { ...schema, ...checked } : schema,
  );
}

function isSchema(found: Schema): boolean {
  return 'type' in found || 'anyOf' in found;
}
