import type { SliceCommands } from '../slice/add-slice.ts';
import { exportLog } from './export.ts';
import { list } from './list.ts';
import { verify } from './verify.ts';

export const auditCommands: SliceCommands = {
  name: 'audit',
  description: 'the audit log: list, export, verify',
  examples: [
    'redrive audit list --outcome denied',
    'redrive audit export > audit.ndjson',
    'redrive audit verify',
  ],
  groups: { Read: [list, exportLog, verify] },
};
