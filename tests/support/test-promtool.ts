import { hasPromtool } from '../../tools/promtool.ts';

const missing = 'promtool is not installed (Debian: apt-get install prometheus)';

if (!hasPromtool) {
  process.stderr.write(`\n*** THE TESTS OF THE ALERTS ARE SKIPPED: ${missing} ***\n\n`);
  if (process.env['CI'] === 'true') throw new Error(missing);
}

/** Options for tests that need promtool: skipped, with the reason, where there is none. */
export const needsPromtool = hasPromtool ? {} : { skip: missing };
