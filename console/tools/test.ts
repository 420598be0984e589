import { startVitest } from 'vitest/node';
import { viteOptions } from './vite-options.ts';

/** `npm run test:console`: the pure and component tests of the console. Arguments filter the files. */
const vitest = await startVitest(
  'test',
  process.argv.slice(2),
  {
    root: viteOptions.root ?? '.',
    config: false,
    watch: false,
    environment: 'jsdom',
    include: ['{app,features,components,lib}/**/*.test.{ts,tsx}'],
    passWithNoTests: false,
    reporters: ['dot'],
    css: { include: [/tokens\.css/], modules: { classNameStrategy: 'non-scoped' } },
    pool: 'threads',
    isolate: false,
    // No test is about time; a machine may be busy.
    testTimeout: 60_000,
    maxWorkers: 2,
  },
  viteOptions,
);
await vitest.close();
