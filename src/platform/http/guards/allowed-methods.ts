/** The patterns and methods of all routes, to distinguish a wrong method from an unknown path. */
export type MethodTable = Readonly<{
  add(pattern: string, methods: readonly string[]): void;
  /** The sorted methods of the path; empty for an unknown path. */
  allowedFor(url: string): readonly string[];
  /**
   * The path is a fixed route, but only for other methods. The router would match it as a parameter of another
   * route: `GET /jobs/requeue` as the job with the id `requeue`.
   */
  isMistakenForParameter(url: string, method: string): boolean;
}>;

type Pattern = Readonly<{ form: RegExp; methods: Set<string> }>;

export function createMethodTable(): MethodTable {
  const fixed = new Map<string, Set<string>>();
  const patterns = new Map<string, Pattern>();

  function methodsOf(pattern: string): Set<string> {
    if (!/[:*]/.test(pattern)) return getOrAdd(fixed, pattern, () => new Set<string>());
    return getOrAdd(patterns, pattern, () => ({ form: formOf(pattern), methods: new Set<string>() })).methods;
  }

  return {
    add(pattern, methods) {
      const known = methodsOf(pattern);
      for (const method of methods) known.add(method);
    },
    allowedFor(url) {
      const path = pathOf(url);
      const written = fixed.get(path);
      if (written !== undefined) return [...written].sort();
      const matching = [...patterns.values()].filter(({ form }) => form.test(path));
      return [...new Set(matching.flatMap(({ methods }) => [...methods]))].sort();
    },
    isMistakenForParameter(url, method) {
      return fixed.get(pathOf(url))?.has(method) === false;
    },
  };
}

function getOrAdd<V>(map: Map<string, V>, key: string, make: () => V): V {
  const found = map.get(key) ?? make();
  map.set(key, found);
  return found;
}

function formOf(pattern: string): RegExp {
  const segments = pattern.split('/').map((segment) => {
    if (segment === '*') return '.*';
    return segment.startsWith(':') ? '[^/]+' : segment.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
  });
  return new RegExp(`^${segments.join('/')}$`);
}

function pathOf(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? '';
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
