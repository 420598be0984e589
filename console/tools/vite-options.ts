import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import type { InlineConfig } from 'vite';

/** What the build, the development server and the tests share. */
export const viteOptions: InlineConfig = {
  configFile: false,
  root: fileURLToPath(new URL('../', import.meta.url)),
  // Chunks load each other relative to their own address, so the prefix of the server does not matter.
  base: './',
  publicDir: false,
  plugins: [react()],
  logLevel: 'warn',
};
