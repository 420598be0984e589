import { compileGlobs } from '../glob/match-glob.ts';

/** By what a role can be narrowed. */
export const dimensions = ['topics', 'queues', 'destinations', 'workflows'] as const;
export type Dimension = (typeof dimensions)[number];

/**
 * Patterns of the names that a role is narrowed to; `*` stands for any characters, and `?` is not used. A dimension without patterns is not
 * covered at all: a role for the topics `payments.*` says nothing about queues, so it gives no rights to them.
 */
export type Scope = Readonly<Partial<Record<Dimension, readonly string[]>>>;

/** What a request is about: names by dimension. Nothing belongs to no topic, queue, destination or workflow. */
export type Resource = Readonly<Partial<Record<Dimension, readonly string[]>>>;

/**
 * Which names of one dimension a principal may see: one of the alternatives must match, and each of its lists must have
 * a pattern that matches. Null stands for all names, and an empty list of alternatives for none.
 */
export type NameFilter = readonly (readonly (readonly string[])[])[] | null;

/** The filters of all dimensions: for what has names of several. */
export type NameFilters = Readonly<Record<Dimension, NameFilter>>;

/** The items that a principal created or holds, as far as their names are let through. */
export type OwnItems = Readonly<{ subject: string; names: NameFilter }>;

/** What a list shows: what the names let through, and of the rest what is the principal's own. */
export type Visible = Readonly<{ names: NameFilter; own: OwnItems | null }>;

/** Whether the scope covers every name of the resource. A narrowed role never covers what has no name. */
export function covers(scope: Scope, resource: Resource): boolean {
  const named = dimensions.filter((dimension) => resource[dimension] !== undefined);
  return (
    named.length > 0 &&
    named.every((dimension) => {
      const matches = compileGlobs(scope[dimension] ?? []);
      const names = resource[dimension] ?? [];
      return names.length > 0 && names.every(matches);
    })
  );
}

/** Whether every resource that the inner scope covers is covered by the outer one. May be false where it is true. */
export function isWithin(inner: Scope, outer: Scope): boolean {
  return dimensions.every((dimension) => {
    // The stars of the inner pattern can match only stars of the outer one, which match whatever replaces them.
    const matches = compileGlobs(outer[dimension] ?? []);
    return (inner[dimension] ?? []).every(matches);
  });
}

/**
 * Whether the filters let every name of the resource through; the SQL condition of a list says the same. What has no name
 * is for principals that are not narrowed.
 */
export function passAll(filters: NameFilters, resource: Resource): boolean {
  if (dimensions.every((dimension) => filters[dimension] === null)) return true;
  const named = dimensions.filter((dimension) => resource[dimension] !== undefined);
  return (
    named.length > 0 &&
    named.every((dimension) => {
      const [filter, names] = [filters[dimension], resource[dimension] ?? []];
      return filter === null || (names.length > 0 && names.every((name) => passes(filter, name)));
    })
  );
}

/** Whether the filter lets the name through; the SQL condition of a list says the same. */
export function passes(filter: NameFilter, name: string): boolean {
  return filter === null || filter.some((lists) => lists.every((globs) => compileGlobs(globs)(name)));
}
