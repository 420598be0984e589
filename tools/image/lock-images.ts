import { readDockerfile } from './dockerfile.ts';

export type LockedImages = Readonly<{
  /** What is wrong with the options. If there is anything, the other two are not to be written. */
  problems: readonly string[];
  dockerfile: string;
  /** One image per line, with its digest. */
  lock: string;
}>;

/** Names the images of deploy/Dockerfile by digest. `given` has `node:24-trixie-slim=sha256:…` for each image. */
export function lockImages(dockerfile: string, given: readonly string[]): LockedImages {
  const names = imagesOf(dockerfile);
  const digests = new Map<string, string>();
  const problems: string[] = [];
  for (const option of given) {
    const [, name = '', digest = ''] = /^([^=]*)=?(.*)$/s.exec(option) ?? [];
    if (!names.includes(name))
      problems.push(`deploy/Dockerfile does not name ${name}, but ${names.join(' and ')}`);
    else if (digests.has(name)) problems.push(`${name} is given twice`);
    else digests.set(name, digest);
  }
  for (const [name, digest] of digests)
    if (!/^sha256:[0-9a-f]{64}$/.test(digest))
      problems.push(`${name} needs a digest, sha256: and 64 hexadecimal digits, not ${digest}`);
  for (const name of names)
    if (!digests.has(name)) problems.push(`${name} has no digest: add --image ${name}=sha256:…`);
  const lockedOf = (name: string): string => `${name}@${digests.get(name) ?? ''}`;
  return {
    problems,
    dockerfile: dockerfile.replaceAll(/^(ARG \w+=)(\S+)$/gm, (line, argument: string, image: string) =>
      digests.has(nameOf(image)) ? `${argument}${lockedOf(nameOf(image))}` : line,
    ),
    lock: names.map((name) => `${lockedOf(name)}\n`).join(''),
  };
}

function imagesOf(dockerfile: string): readonly string[] {
  const { args, stages } = readDockerfile(dockerfile);
  const images = Object.values(args).filter((image) => stages.some(({ base }) => base === image));
  return [...new Set(images.map(nameOf))];
}

/** Without the digest of an earlier release. */
const nameOf = (image: string): string => image.replace(/@.*$/, '');
