import type { SliceCommands } from '../slice/add-slice.ts';
import { addArchiveCommand } from './archive.ts';
import { history, list, show, topics } from './browse.ts';
import { dead, remove, reopen, route } from './decide.ts';
import { edit } from './edit.ts';
import { erase } from './erase.ts';
import { addFingerprintsCommand } from './fingerprints.ts';
import { group, groups } from './groups.ts';
import { facets, suggest } from './message-filters.ts';
import { policies } from './policies.ts';
import { raw } from './raw.ts';
import { addRecountCommand } from './recount.ts';
import { redrive } from './redrive.ts';
import { reveal } from './reveal.ts';
import { retry, retryAll } from './retry.ts';
import { accounting, forget, seek, sources } from './sources.ts';
import { verify } from './verify.ts';
import { diff, versions } from './versions.ts';

export const dlqCommands: SliceCommands = {
  name: 'dlq',
  description: 'dead letters from Kafka: list, retry, reopen, edit, delete',
  examples: [
    'redrive dlq topics',
    'redrive dlq list orders.v1 --status DEAD',
    'redrive dlq retry-all orders.v1 --url http://redrive.example.com:8080',
  ],
  groups: {
    Read: [topics, groups, group, list, facets, suggest, show, reveal, history, raw, versions, diff],
    Change: [retry, retryAll, redrive, policies, dead, reopen, route, edit, remove, erase],
    'Dead-letter topics': [sources, accounting, seek, verify, forget],
    'Database, without a server': [addArchiveCommand, addRecountCommand, addFingerprintsCommand],
  },
};
