import type { ProtectAction } from './protect-rule.ts';

/**
 * The protected paths of a document as one tree, so that a place in the document is a small set of its nodes, and one
 * step down costs a look into each of them. Names are compared in lower case.
 */
export type PathNode = {
  readonly literal: Map<string, PathNode>;
  /** Behind `*`. */
  any: PathNode | null;
  /** Behind `**`, which also stands for no step at all. */
  deep: PathNode | null;
  readonly isDeep: boolean;
  action: ProtectAction | null;
};

/** Where a document is, seen from the paths. */
export type Place = Readonly<{ nodes: readonly PathNode[]; action: ProtectAction | null }> & {
  /** Behind every name that no path has here: most names are such. Made when it is first needed. */
  rest?: Place;
};

export type FieldPath = Readonly<{ path: string; action: ProtectAction }>;

/** The steps of `/a/b` (a JSON Pointer) or of `a.b`; null if it names nothing. */
export function readFieldPath(path: string): readonly string[] | null {
  const steps = path.startsWith('/')
    ? path
        .slice(1)
        .split('/')
        .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    : path.replace(/^\$\.?/, '').split('.');
  if (steps.some((step) => step === '') || steps.at(-1) === '**') return null;
  return steps.map((step) => step.toLowerCase());
}

export function compilePaths(paths: readonly FieldPath[]): Place {
  const root = createNode(false);
  for (const { path, action } of paths) {
    let node = root;
    for (const step of readFieldPath(path) ?? []) node = childOf(node, step);
    node.action = strongest(node.action, action);
  }
  return { nodes: closure([root]), action: null };
}

/** The place of a member with this name, or of an item with this index. */
export function stepInto(place: Place, name: string): Place {
  if (place.nodes.length === 0) return nowhere;
  const lower = name.toLowerCase();
  if (place.nodes.some(({ literal }) => literal.has(lower))) return placeBehind(place, lower);
  return (place.rest ??= placeBehind(place, null));
}

function placeBehind({ nodes }: Place, name: string | null): Place {
  const next: PathNode[] = [];
  for (const node of nodes) {
    const named = name === null ? undefined : node.literal.get(name);
    if (named !== undefined) next.push(named);
    if (node.any !== null) next.push(node.any);
    if (node.isDeep) next.push(node);
  }
  if (next.length === 0) return nowhere;
  const all = closure(next);
  return {
    nodes: all,
    action: all.reduce<ProtectAction | null>((one, { action }) => strongest(one, action), null),
  };
}

const nowhere: Place = { nodes: [], action: null };

function createNode(isDeep: boolean): PathNode {
  return { literal: new Map(), any: null, deep: null, isDeep, action: null };
}

function childOf(node: PathNode, step: string): PathNode {
  if (step === '*') return (node.any ??= createNode(false));
  if (step === '**') return (node.deep ??= createNode(true));
  let child = node.literal.get(step);
  if (child === undefined) node.literal.set(step, (child = createNode(false)));
  return child;
}

/** With what follows a `**` at these nodes. Each node is there once, so a place is never larger than the tree. */
function closure(nodes: readonly PathNode[]): readonly PathNode[] {
  const all = new Set<PathNode>();
  for (const node of nodes) for (let at: PathNode | null = node; at !== null; at = at.deep) all.add(at);
  return [...all];
}

/** Of two actions at one place the one that shows less. */
export function strongest(one: ProtectAction | null, other: ProtectAction | null): ProtectAction | null {
  if (one === null || other === null) return one ?? other;
  if (one === 'drop' || other === 'drop') return 'drop';
  return one === 'mask' || other === 'mask' ? 'mask' : 'hash';
}
