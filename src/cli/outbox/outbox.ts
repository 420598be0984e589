import type { SliceCommands } from '../slice/add-slice.ts';
import { facets, ledger, list, reveal, show } from './browse.ts';
import { add, cancel, skip, supersede } from './decide.ts';
import { destinations } from './destinations.ts';

export const outboxCommands: SliceCommands = {
  name: 'outbox',
  description: 'outbound requests (orders): add, list, cancel, skip or replace them',
  examples: [
    'redrive outbox list --needs-attention',
    'redrive outbox show 1042',
    'redrive outbox ledger order-2026-000117',
  ],
  groups: {
    Read: [list, facets, show, reveal, ledger, destinations],
    Change: [add, cancel, skip, supersede],
  },
};
