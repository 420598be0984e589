export type StackPart = Readonly<{ kind: 'own' | 'library'; lines: readonly string[] }>;

/** Frames of runtimes and well-known frameworks, which say little about the cause. */
const library =
  /^\s+at (?:java\.|javax\.|jdk\.|sun\.|jakarta\.|kotlin\.|scala\.|org\.springframework\.|org\.apache\.|io\.netty\.|reactor\.|com\.fasterxml\.|org\.hibernate\.|System\.|Microsoft\.|.*(?:node:internal|\/node_modules\/))|^\s+File ".*(?:site-packages|\/lib\/python)|^\s+\/usr\/local\/go\/src\//;
const shortest = 2;

/** Neighbouring frames of libraries as one part; a single one is not worth folding. */
export function splitStack(stack: string): readonly StackPart[] {
  const parts: { kind: StackPart['kind']; lines: string[] }[] = [];
  for (const line of stack.split('\n')) {
    const kind = library.test(line) ? 'library' : 'own';
    const last = parts.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else parts.push({ kind, lines: [line] });
  }
  return parts.map(({ kind, lines }) => ({ kind: lines.length < shortest ? 'own' : kind, lines }));
}
