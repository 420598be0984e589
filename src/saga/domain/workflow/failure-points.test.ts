import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failurePoints, type FailurePoint } from './failure-points.ts';
import { parseWorkflow, type KnownServices } from './parse-workflow.ts';

/** One line for each point, as a person would say it. */
function pointsOf(steps: readonly unknown[], services: KnownServices | null = null): readonly string[] {
  const parsed = parseWorkflow({ name: 'x', steps }, null);
  assert(parsed.ok, JSON.stringify(parsed));
  return failurePoints(parsed.workflow, services).map(line);
}

function line({ step, failure, undo, person, ends }: FailurePoint): string {
  const steps = undo.map((each) => {
    if (each.does !== 'call') return `${each.does} ${each.step}`;
    return `${each.method}${each.leftOut.length > 0 ? ` without ${each.leftOut.join()}` : ''}`;
  });
  const who = person === null ? '' : ` person(${person.step} ${person.op})`;
  return `${step ?? '-'} ${failure}:${who} [${steps.join(', ')}] ${ends.join('|')}`.trimEnd();
}

const step = (name: string, more: object = {}): object => ({
  name,
  service: 's',
  method: `S.${name}`,
  ...more,
});
const undone = (name: string, more: object = {}): object =>
  step(name, { compensate: `S.un${name}`, ...more });

test('what is done is undone in reverse, and a step in doubt with it', () => {
  assert.deepEqual(pointsOf([undone('a'), undone('b'), undone('c')]), [
    '- aborted: [] CANCELLED|FAILED',
    'a refused: [] FAILED',
    'a in_doubt: [S.una] FAILED',
    'a aborted: [S.una] CANCELLED|FAILED',
    'b refused: [S.una] FAILED',
    'b in_doubt: [S.unb, S.una] FAILED',
    'b aborted: [S.unb, S.una] CANCELLED|FAILED',
    'c refused: [S.unb, S.una] FAILED',
    'c in_doubt: [S.unc, S.unb, S.una] FAILED',
    'c aborted: [S.unc, S.unb, S.una] CANCELLED|FAILED',
  ]);
});

test('a done step without compensate is skipped; in doubt a person is asked, unless it says none', () => {
  assert.deepEqual(pointsOf([step('a'), step('b', { compensate: 'none' })]).slice(1), [
    'a refused: [] FAILED',
    'a in_doubt: person(a action) [] FAILED',
    'a aborted: [skip a] CANCELLED|FAILED',
    'b refused: [skip a] FAILED',
    'b in_doubt: [skip b, skip a] FAILED',
    'b aborted: [skip b, skip a] CANCELLED|FAILED',
  ]);
});

test('the pivot cannot be aborted, its doubt needs attention, and after it only a person helps', () => {
  assert.deepEqual(pointsOf([undone('a'), step('p', { pivot: true }), step('z')]), [
    '- aborted: [] CANCELLED|FAILED',
    'a refused: [] FAILED',
    'a in_doubt: [S.una] FAILED',
    'a aborted: [S.una] CANCELLED|FAILED',
    'p refused: [S.una] FAILED',
    'p in_doubt: person(p action) [S.una] FAILED',
    'z refused: person(z action) []',
    'z in_doubt: person(z action) []',
  ]);
});

test('an undo in doubt says what it is sent without, and needs attention where its path cannot be made', () => {
  const input = { compensate_input: { id: '${own.id}', sku: '${input.sku}', list: ['${own.a} ${own.b}'] } };
  const http = { name: 'b', service: 'h', method: 'POST /b', compensate: 'DELETE /b/${own.id}' };
  assert.deepEqual(pointsOf([undone('a', input), http]).slice(2), [
    'a in_doubt: [S.una without id,list.0] FAILED',
    'a aborted: [S.una] CANCELLED|FAILED',
    'b refused: [S.una] FAILED',
    'b in_doubt: person(b compensate) [ask b, S.una] FAILED',
    'b aborted: [DELETE /b/${own.id}, S.una] CANCELLED|FAILED',
  ]);
});

test('how long it takes to be in doubt is said', () => {
  const services: KnownServices = new Map([['once', { type: 'grpc', isIdempotent: false }]]);
  const parsed = parseWorkflow(
    {
      name: 'x',
      steps: [
        step('a'),
        step('b', { retry: { max_attempts: 1 } }),
        step('c', { service: 'once' }),
        step('p', { pivot: true }),
        step('z', { service: 'once' }),
      ],
    },
    null,
  );
  assert(parsed.ok);
  const reasons = failurePoints(parsed.workflow, services)
    .filter(({ failure }) => failure === 'in_doubt')
    .map(({ person }) => person?.why ?? '');
  const said = [
    /after 3 attempts and has no/,
    /after 1 attempt and/,
    /after one call, which/,
    /pivot is in doubt after 1d of attempts/,
    /after one call, which/,
  ];
  assert.equal(reasons.length, said.length);
  for (const [at, words] of said.entries()) assert.match(reasons[at] ?? '', words);
});
