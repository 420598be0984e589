/** A Dockerfile as this project writes them: one instruction per line, and no instruction that is not listed here. */
const KEYWORDS = [
  'ARG',
  'FROM',
  'WORKDIR',
  'COPY',
  'RUN',
  'ENV',
  'USER',
  'EXPOSE',
  'ENTRYPOINT',
  'CMD',
  'ADD',
  'HEALTHCHECK',
  'LABEL',
] as const;

type Keyword = (typeof KEYWORDS)[number];

export type Instruction = Readonly<{ keyword: Keyword; text: string }>;

export type Stage = Readonly<{ name: string; base: string; instructions: readonly Instruction[] }>;

export type Dockerfile = Readonly<{
  /** Default values of the arguments before the first stage. */
  args: Readonly<Record<string, string>>;
  stages: readonly Stage[];
}>;

export function readDockerfile(text: string): Dockerfile {
  const args: Record<string, string> = {};
  const stages: { name: string; base: string; instructions: Instruction[] }[] = [];
  for (const instruction of text.split('\n').flatMap(readInstruction)) {
    const stage = stages.at(-1);
    if (instruction.keyword === 'FROM') {
      const [base = '', , name = ''] = instruction.text.split(/\s+/);
      stages.push({ name, base: substitute(base, args), instructions: [] });
    } else if (stage !== undefined) stage.instructions.push(instruction);
    else {
      const [name = '', value = ''] = instruction.text.split('=');
      args[name] = value;
    }
  }
  return { args, stages };
}

function readInstruction(line: string): readonly Instruction[] {
  if (line.trim() === '' || line.startsWith('#')) return [];
  const [, word, text = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
  const keyword = KEYWORDS.find((known) => known === word);
  if (keyword === undefined || text.endsWith('\\')) throw new Error(`unknown instruction: ${line}`);
  return [{ keyword, text: text.trim() }];
}

function substitute(text: string, args: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (_all, name: string) => args[name] ?? '');
}

/** The arguments of ENTRYPOINT or CMD in their JSON form; undefined for the shell form. */
export function vectorOf(text: string): readonly string[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) && parsed.every((part) => typeof part === 'string') ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** What a COPY copies, from which stage, and where to. */
export function copyOf(
  text: string,
): Readonly<{ from: string | undefined; sources: readonly string[]; target: string }> {
  const words = text.split(/\s+/);
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
  const paths = words.filter((word) => !word.startsWith('--'));
  return { from, sources: paths.slice(0, -1), target: paths.at(-1) ?? '' };
}
