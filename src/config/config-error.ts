/** One problem. Reason and suggestion never repeat a value, because it may be a secret. */
export type Problem = Readonly<{
  /** Path of the key, or of an unreadable file. */
  path: string;
  reason: string;
  /** Source of the value: file and line, environment variable or option. */
  source?: string | undefined;
  /** The most similar valid keys or values. */
  suggestion?: string | undefined;
}>;

/** An invalid configuration, with all its problems. */
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
