import { createServer } from 'vite';
import { viteOptions } from './vite-options.ts';

/**
 * `npm run console`: the development server of the console. It passes API calls on to a running server, by default that
 * of `npm start`, with the host and the origin that the server expects: `npm run console -- http://127.0.0.1:9000`.
 */
const [, , target = 'http://127.0.0.1:8080'] = process.argv;
const proxy = { target, changeOrigin: true, headers: { origin: new URL(target).origin } };
const server = await createServer({
  ...viteOptions,
  base: '/',
  server: { host: '127.0.0.1', port: 5173, proxy: { '/api': proxy, '/auth': proxy, '/openapi.json': proxy } },
});
await server.listen();
process.stdout.write(`The console of ${target}: ${server.resolvedUrls?.local[0] ?? ''}\n`);
