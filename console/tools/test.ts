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
    css: { modules: { classNameStrategy: 'non-scoped' } },
    pool: 'threads',
    isolate: false,
    maxWorkers: 2,
  },
  viteOptions,
);
await vitest.close();
