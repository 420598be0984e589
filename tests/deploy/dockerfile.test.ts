import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkDockerfile } from '../../tools/image/check-dockerfile.ts';
import { copyOf, readDockerfile } from '../../tools/image/dockerfile.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const text = readFileSync(`${root}deploy/Dockerfile`, 'utf8');
/** Written by a release: one image per line, with its digest. */
const lockFile = `${root}deploy/images.lock`;
const locked = existsSync(lockFile) ? readFileSync(lockFile, 'utf8').trim().split('\n') : null;

test('the Dockerfile keeps the rules for the image', () => {
  assert.deepEqual(checkDockerfile(text, locked), []);
});

describe('a Dockerfile is refused', () => {
  const cases: readonly (readonly [string, string | RegExp, string, RegExp])[] = [
    ['that runs as root', 'USER 65532:65532', 'USER 0', /USER is not/],
    ['that names no user', 'USER 65532:65532\n', '', /USER is not/],
    [
      'with an entry point in a shell',
      /ENTRYPOINT .*/,
      'ENTRYPOINT node dist/main.js',
      /ENTRYPOINT is not a JSON/,
    ],
    ['with a command in a shell', /CMD .*/, 'CMD serve', /CMD is not a JSON/],
    ['with a program that PATH finds', '/nodejs/bin/node', 'node', /absolute path/],
    ['with ADD', 'COPY config config/', 'ADD config config/', /ADD/],
    ['that copies the whole folder', 'COPY config config/', 'COPY . .', /names what it copies/],
    [
      'whose files the process may change',
      'COPY config',
      'COPY --chown=65532 config',
      /files belong to root/,
    ],
    [
      'that runs install scripts',
      'npm ci --ignore-scripts --omit=dev',
      'npm ci --omit=dev',
      /--ignore-scripts/,
    ],
    ['that does not install by the lock file', 'npm ci', 'npm install', /npm ci/],
    ['that fetches', 'RUN node tools/build.ts', 'RUN curl http://example.com', /fetched/],
    ['whose last stage runs commands', 'USER 65532:65532', 'RUN true\nUSER 65532:65532', /no shell/],
    ['with a secret', 'ENV NODE_ENV=production', 'ENV DATABASE_PASSWORD=x', /secret/],
    ['with an image without a tag', 'node:24-trixie-slim', 'node', /no exact tag/],
    [
      'with an image that has a digest and no tag',
      'node:24-trixie-slim',
      `node@sha256:${'a'.repeat(64)}`,
      /no exact tag/,
    ],
    ['with the newest image', 'node:24-trixie-slim', 'node:latest', /no exact tag/],
    ['with an image that is no argument', 'FROM ${RUN_IMAGE}', 'FROM alpine:3', /no argument/],
  ];
  for (const [name, from, to, problem] of cases)
    test(name, () => {
      const changed = text.replace(from, () => to);
      assert.notEqual(changed, text);
      assert.match(checkDockerfile(changed, null).join('\n'), problem);
    });

  test('whose images are not the ones of the release', () => {
    assert.equal(checkDockerfile(text, []).length, 2);
  });
});

test('everything that the Dockerfile copies exists, and .dockerignore lets it through', () => {
  const allowed = readFileSync(`${root}.dockerignore`, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  const copied = readDockerfile(text)
    .stages.flatMap(({ instructions }) => instructions)
    .filter(({ keyword }) => keyword === 'COPY')
    .map((instruction) => copyOf(instruction.text))
    .flatMap(({ from, sources }) => (from === undefined ? sources : []));
  for (const source of copied) {
    assert.ok(existsSync(`${root}${source}`), `there is no ${source}`);
    assert.ok(
      allowed.some((path) => source === path || source.startsWith(`${path}/`)),
      `.dockerignore excludes ${source}`,
    );
  }
  for (const path of allowed)
    assert.ok(
      copied.some((source) => source === path || source.startsWith(`${path}/`)),
      `nothing copies ${path}`,
    );
});
