import { test } from 'node:test';
import { loadConfig } from '../../src/config/config.ts';
import { startSystem } from '../../src/compose.ts';
import { createLogger } from '../../src/platform/telemetry/logger.ts';
import { dumpSchema } from '../../tools/dump-schema.ts';
import { routesDocument } from '../../tools/routes-document.ts';
import { assertApproved } from '../support/approved.ts';
import { createTestDatabase } from '../support/database.ts';
import { databaseEnv } from '../support/pooler.ts';

test('the schema that the migrations make is the approved one', async () => {
  const database = await createTestDatabase();
  try {
    await assertApproved(new URL('../../docs/schema.sql', import.meta.url), await dumpSchema(database.db));
  } finally {
    await database.drop();
  }
});

test('the API description and the list of routes are the approved ones', async () => {
  const database = await createTestDatabase();
  const config = loadConfig({ env: { ...databaseEnv(database.url), PORT: '0' } });
  const logger = createLogger({ service: 'test', version: '0', environment: 'test', level: 'silent' });
  const system = await startSystem(config, { onPortTaken: 'fail', logger });
  try {
    const answer = await fetch(`${system.url}/openapi.json`);
    const text = `${JSON.stringify(await answer.json(), null, 2)}\n`;
    await assertApproved(new URL('../../docs/openapi.json', import.meta.url), text);
    const routes = routesDocument(await system.routes());
    await assertApproved(new URL('../../docs/routes.md', import.meta.url), routes);
  } finally {
    await system.stop();
    await database.drop();
  }
});
