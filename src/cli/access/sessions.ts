import { escapeText } from '../../kernel/escape-text.ts';
import { lastColumn, textColumn } from '../output/columns.ts';
import type { Column } from '../output/render-table.ts';
import type { SliceCommands } from '../slice/add-slice.ts';
import { apiCommand, rowsAs } from '../slice/api-command.ts';

type Session = Readonly<{
  subject: string;
  name: string;
  issuer_roles: readonly string[];
  created_at: string;
  last_seen_at: string;
  address: string | null;
}>;

const columns: readonly Column<Session>[] = [
  textColumn('NAME', ({ name }) => name, 10),
  textColumn('LOGIN', ({ created_at }) => created_at),
  textColumn('LAST SEEN', ({ last_seen_at }) => last_seen_at),
  textColumn('ADDRESS', ({ address }) => address ?? '-'),
  textColumn('ROLES AT ISSUER', ({ issuer_roles: roles }) => roles.join(' '), 12),
  lastColumn('SUBJECT', ({ subject }) => subject),
];

const list = apiCommand({
  name: 'list',
  description: 'list who is logged in to the console, the latest login first',
  route: 'GET /api/v1/sessions',
  examples: ['redrive sessions list'],
  print: rowsAs<Session>('sessions', columns, 'nobody is logged in'),
});

const end = apiCommand<Readonly<{ message: string }>>({
  name: 'end',
  description: 'end all sessions of a person, and revoke the API keys that the person has made',
  route: 'POST /api/v1/sessions/end',
  inputs: [
    {
      flags: '<subject>',
      text: 'the person, as `redrive sessions list` shows it: user:<issuer>|<subject>',
      field: 'subject',
    },
    { flags: '--reason <text>', text: 'reason, for the audit log', isRequired: true },
  ],
  examples: ["redrive sessions end 'user:https://idp.example.com/realms/main|7f3c' --reason 'left the team'"],
  print({ message }, { print }) {
    print.line(escapeText(message));
    print.note('access tokens that the issuer has given stay valid until they expire');
  },
});

export const sessionCommands: SliceCommands = {
  name: 'sessions',
  description: 'logins of people in the console: list them, end those of a person',
  examples: ['redrive sessions list'],
  groups: { Read: [list], Change: [end] },
};
