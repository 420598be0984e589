import { copyOf, readDockerfile, vectorOf, type Instruction } from './dockerfile.ts';

/** An unprivileged account that exists in the distroless images. Kubernetes can verify a number, not a name. */
const account = '65532:65532';

/**
 * The rules for the image: an unprivileged account, no shell between the kernel's signals and the program, files that
 * only root may change, no install scripts, and images that are named exactly. `locked` are the digests of a release.
 */
export function checkDockerfile(text: string, locked: readonly string[] | null): readonly string[] {
  const { args, stages } = readDockerfile(text);
  const all = stages.flatMap(({ instructions }) => instructions);
  const last = stages.at(-1)?.instructions ?? [];
  return [
    ...Object.entries(args).flatMap(([name, image]) => checkImage(name, image, locked)),
    ...stages.filter(({ base }) => !isArgument(base, args)).map(({ base }) => `FROM ${base} is no argument`),
    ...all.flatMap(checkInstruction),
    ...checkProcess(last),
  ];
}

function isArgument(base: string, args: Readonly<Record<string, string>>): boolean {
  return Object.values(args).includes(base);
}

function checkImage(name: string, image: string, locked: readonly string[] | null): readonly string[] {
  const tag = /^[^@]*:([\w.-]+)(@sha256:[0-9a-f]{64})?$/.exec(image)?.[1];
  if (tag === undefined || tag === 'latest') return [`${name} has no exact tag: ${image}`];
  return locked === null || locked.includes(image) ? [] : [`${name} is not in deploy/images.lock: ${image}`];
}

function checkInstruction({ keyword, text }: Instruction): readonly string[] {
  if (keyword === 'ADD') return ['ADD may fetch and unpack: use COPY'];
  if (keyword === 'COPY' && /--ch(own|mod)/.test(text)) return [`files belong to root: COPY ${text}`];
  if (keyword === 'COPY' && copyOf(text).sources.some((source) => source === '.' || source.includes('*')))
    return [`COPY names what it copies: COPY ${text}`];
  if (keyword === 'RUN' && /\bnpm\b/.test(text) && !/^npm ci --ignore-scripts\b/.test(text))
    return [`npm runs as npm ci --ignore-scripts: RUN ${text}`];
  if (keyword === 'RUN' && /\b(curl|wget|sudo)\b/.test(text)) return [`nothing is fetched: RUN ${text}`];
  if (keyword === 'ENV' && /PASSWORD|SECRET|TOKEN/i.test(text)) return [`a secret in the image: ENV ${text}`];
  return [];
}

/** What the last stage says about the process. */
function checkProcess(instructions: readonly Instruction[]): readonly string[] {
  const lastOf = (keyword: Instruction['keyword']): string =>
    instructions.findLast((instruction) => instruction.keyword === keyword)?.text ?? '';
  const problems: string[] = [];
  if (lastOf('USER') !== account) problems.push(`USER is not ${account}: ${lastOf('USER')}`);
  for (const keyword of ['ENTRYPOINT', 'CMD'] as const)
    if (vectorOf(lastOf(keyword)) === undefined)
      problems.push(`${keyword} is not a JSON vector: ${lastOf(keyword)}`);
  if (vectorOf(lastOf('ENTRYPOINT'))?.[0]?.startsWith('/') !== true)
    problems.push('ENTRYPOINT does not start with an absolute path');
  if (instructions.some(({ keyword }) => keyword === 'RUN'))
    problems.push('the last stage has no shell to RUN');
  return problems;
}
