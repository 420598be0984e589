/** The claim at a dotted path or JSON Pointer; undefined if there is none. */
export function claimAt(claims: unknown, path: string): unknown {
  return stepsOf(path).reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step)
        ? (value as Readonly<Record<string, unknown>>)[step]
        : undefined,
    claims,
  );
}

function stepsOf(path: string): readonly string[] {
  if (!path.startsWith('/')) return path.split('.');
  return path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** A text or a list of texts. Texts are never split: a role may contain spaces and commas. */
export function textsOf(claim: unknown): readonly string[] {
  const texts = Array.isArray(claim) ? (claim as readonly unknown[]) : [claim];
  return texts.filter((text): text is string => typeof text === 'string' && text !== '');
}
