/** One thing that is wrong. Neither the reason nor the suggestion ever repeats a value: it may be a secret. */
export type Problem = Readonly<{
  /** The key by its full path, or the file that cannot be read. */
  path: string;
  reason: string;
  /** Where the value came from: a file with its line, an environment variable or an option. */
  source?: string | undefined;
  /** The nearest valid key or value; several where they are equally near. */
  suggestion?: string | undefined;
}>;

/** A configuration that cannot be used, with everything that is wrong with it at once. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
    super(
      [`the configuration has ${count}:`, ...problems.map((problem) => `  ${lineOf(problem)}`)].join('\n'),
    );
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

function lineOf({ path, reason, source, suggestion }: Problem): string {
  const where = source === undefined ? '' : ` (${source})`;
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
  return `${path}: ${reason}${where}${hint}`;
}
