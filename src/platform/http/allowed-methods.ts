/** Knows every route's pattern and methods, to tell a wrong method from an unknown path. */
export type MethodTable = Readonly<{
  add(pattern: string, methods: readonly string[]): void;
  /** The methods that this path has, sorted; empty for a path that nobody serves. */
  allowedFor(url: string): readonly string[];
}>;

export function createMethodTable(): MethodTable {
  const routes = new Map<string, Readonly<{ form: RegExp; methods: Set<string> }>>();
  return {
    add(pattern, methods) {
      const route = routes.get(pattern) ?? { form: formOf(pattern), methods: new Set<string>() };
      for (const method of methods) route.methods.add(method);
      routes.set(pattern, route);
    },
    allowedFor(url) {
      const path = pathOf(url);
      const matching = [...routes.values()].filter(({ form }) => form.test(path));
      return [...new Set(matching.flatMap(({ methods }) => [...methods]))].sort();
    },
  };
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
