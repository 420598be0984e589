import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { alertNames } from '../../tools/observability/alerts.ts';
import { dashboards } from '../../tools/observability/dashboards.ts';
import { generatedFiles } from '../../tools/observability/generated-files.ts';
import { checkCommand } from '../docs/shell-blocks.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const runbooks = `${root}docs/runbooks/`;
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');

test('rules and dashboards are as `npm run observability` writes them', () => {
  for (const [path, text] of generatedFiles())
    assert.equal(read(path), text, `${path}: run \`npm run observability\``);
  const written = readdirSync(`${root}deploy/grafana`)
    .filter((name) => name.endsWith('.json'))
    .map((name) => `deploy/grafana/${name}`);
  assert.deepEqual(
    written.filter((path) => !generatedFiles().has(path)),
    [],
    'no dashboard is left over',
  );
});

test('every alert has a runbook, and every runbook an alert', () => {
  const files = readdirSync(runbooks).map((name) => name.replace(/\.md$/, ''));
  assert.deepEqual(files.toSorted(), alertNames.toSorted());
});

test('every runbook says what the alert means, its impact, where to look, what to do and what to check', () => {
  for (const name of alertNames) {
    const headings = [...read(`docs/runbooks/${name}.md`).matchAll(/^#+ (.+)$/gm)].map(([, text]) => text);
    assert.deepEqual(headings, [name, 'Meaning', 'Impact', 'Look', 'Act', 'Afterwards']);
  }
});

test('every command that a runbook names in its text exists', async () => {
  const wrong: string[] = [];
  for (const name of alertNames)
    for (const [, command = ''] of read(`docs/runbooks/${name}.md`).matchAll(/`(redrive [^`]+)`/g))
      await checkCommand(command.replaceAll(/<[a-z]+>/g, '1')).catch(() => wrong.push(`${name}: ${command}`));
  assert.deepEqual(wrong, []);
});

test('the index and the guide name every alert', () => {
  for (const document of ['docs/runbook.md', 'docs/guides/observe.md'])
    for (const name of alertNames)
      assert.ok(read(document).includes(`runbooks/${name}.md`), `${document}: ${name}`);
});

test('a panel that links to a runbook links to one that exists', () => {
  const linked = [...JSON.stringify(dashboards).matchAll(/docs\/runbooks\/(\w+)\.md/g)].map(
    ([, name]) => name,
  );
  assert.ok(linked.length > 30);
  assert.deepEqual(
    linked.filter((name) => !alertNames.includes(name ?? '')),
    [],
  );
});
