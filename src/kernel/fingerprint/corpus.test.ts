import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailureCause, FailurePrinter } from '../../../tests/support/failures/cause.ts';
import { dotnetCauses, printDotnet } from '../../../tests/support/failures/dotnet-failures.ts';
import { goCauses, printGo } from '../../../tests/support/failures/go-failures.ts';
import { javaCauses, printJava } from '../../../tests/support/failures/java-failures.ts';
import { nodeCauses, printNode } from '../../../tests/support/failures/node-failures.ts';
import { printPython, pythonCauses } from '../../../tests/support/failures/python-failures.ts';
import { variedValues } from '../../../tests/support/failures/varied-values.ts';
import { createFingerprinter } from './fingerprint.ts';

const languages: readonly (readonly [string, readonly FailureCause[], FailurePrinter])[] = [
  ['java', javaCauses, printJava],
  ['node', nodeCauses, printNode],
  ['python', pythonCauses, printPython],
  ['go', goCauses, printGo],
  ['dotnet', dotnetCauses, printDotnet],
];
const variants = 60;

/** The fingerprints of each cause, with their bases, over all of its variants. */
function groupsByCause(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const fingerprint = createFingerprinter();
  const groups = new Map<string, Map<string, string>>();
  for (const [language, causes, print] of languages)
    for (const cause of causes) {
      const found = new Map<string, string>();
      for (let seed = 1; seed <= variants; seed += 1) {
        const error = print(cause, variedValues(seed), seed % 4);
        const made = fingerprint(error);
        found.set(made.fingerprint, JSON.stringify(made.basis));
      }
      groups.set(`${language}: ${cause.name}`, found);
    }
  return groups;
}

test('failures of 49 causes in five languages: no group has two causes, no cause has more than two groups', () => {
  const groups = groupsByCause();
  assert.equal(groups.size, 49);
  const owners = new Map<string, string>();
  for (const [cause, found] of groups) {
    assert.ok(found.size <= 2, `${cause}: ${[...found.values()].join('\n')}`);
    for (const [fingerprint, basis] of found) {
      assert.equal(owners.get(fingerprint), undefined, `${cause} has the group of another: ${basis}`);
      owners.set(fingerprint, cause);
    }
  }
});

test('nearly every cause is one group', () => {
  const split = [...groupsByCause()].filter(([, found]) => found.size > 1);
  assert.ok(
    split.length <= 3,
    split.map(([cause, found]) => `${cause}: ${[...found.values()].join('\n')}`).join('\n\n'),
  );
});
