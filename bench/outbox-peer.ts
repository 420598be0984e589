import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { DatabaseSetup, getDisabledLogger, initializePollingMessageListener } from 'pg-transactional-outbox';
import { Pool } from 'undici';
import type { Database } from '../src/platform/postgres/database.ts';
import { sql } from '../src/platform/postgres/sql.ts';
