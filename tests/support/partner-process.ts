import { parseArgs } from 'node:util';
import { createEffectLedger, openEffectLedger, startPartner, type ScriptRules } from './partner.ts';
import type { PartnerCommand, PartnerReply } from './partner/commands.ts';

/**
 * The partner in a process of its own, so that it does not share the event loop of a bench, and can be killed. Prints
 * one line of JSON with its port and addresses, takes commands by IPC where it has a channel, and ends with it.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    script: { type: 'string', default: '{}' },
    'ledger-file': { type: 'string' },
    'ignore-keys': { type: 'boolean', default: false },
    'keep-requests': { type: 'boolean', default: false },
  },
});

const { 'ledger-file': ledgerFile } = values;
const partner = await startPartner({
  port: Number(values.port),
  script: JSON.parse(values.script) as ScriptRules,
  ledger: ledgerFile === undefined ? createEffectLedger() : openEffectLedger(ledgerFile),
  honoursKeys: !values['ignore-keys'],
  keepsRequests: values['keep-requests'],
});
const { port, url, statusUrl, ledger } = partner;

const end = (): void => void partner.stop().then(() => process.exit(0));
process.once('SIGTERM', end);
process.once('SIGINT', end);
process.once('disconnect', end);
process.on('message', ({ id, ...command }: PartnerCommand & Readonly<{ id: number }>) => {
  process.send?.({ id, ...obey(command) } satisfies PartnerReply & Readonly<{ id: number }>);
});
process.stdout.write(`${JSON.stringify({ port, url, status_url: statusUrl })}\n`);

function obey(command: PartnerCommand): PartnerReply {
  switch (command.command) {
    case 'set_script':
      partner.setScript(command.script);
      return {};
    case 'release':
      partner.release();
      return {};
    case 'effects':
      return { effects: ledger.entries() };
    case 'requests':
      return { requests: partner.requests };
    case 'counts':
      return {
        counts: {
          requests: partner.requestCount(),
          questions: partner.questionCount(),
          keys: ledger.keys(),
          effects: ledger.effects(),
          doubled: ledger.doubled().length,
        },
      };
  }
}
