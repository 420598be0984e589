import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Config } from '../../../config/config.ts';
import { startIssuer, type Issuer } from '../../../../tests/support/issuer.ts';
import { createPeople } from '../../../../tests/support/people.ts';
import { examineIssuers } from './issuers.ts';

let programs: Issuer;
let people: Issuer;
before(async () => {
  programs = await startIssuer();
  people = await startIssuer(['sys_admin'], createPeople({ publicUrl: 'http://127.0.0.1:1' }));
});
after(() => Promise.all([programs.stop(), people.stop()]));

const authWith = (parts: Readonly<{ jwt?: string; oidc?: string; cli?: boolean; keys?: boolean }>) =>
  ({
    auth: {
      jwt: parts.jwt === undefined ? null : { issuer: parts.jwt },
      oidc:
        parts.oidc === undefined ? null : { issuer: parts.oidc, session: { keys: parts.keys ? 'k' : null } },
      cli: parts.cli === true ? { clientId: 'cli', scopes: [] } : null,
    },
  }) as unknown as Pick<Config, 'auth'>;

test('issuers that answer and have what is needed are well', async () => {
  assert.equal((await examineIssuers(authWith({}))).status, 'skipped');
  assert.equal((await examineIssuers(authWith({ jwt: programs.url }))).status, 'ok');
  const both = authWith({ jwt: people.url, oidc: people.url, cli: true, keys: true });
  assert.deepEqual(await examineIssuers(both), { check: 'issuer', status: 'ok', found: people.url });
});

test('what would keep people from logging in is reported', async () => {
  const noDevices = await examineIssuers(authWith({ jwt: programs.url, cli: true }));
  assert.equal(noDevices.status, 'problem');
  assert.match(noDevices.found, /device_authorization_endpoint/);
  const noKeys = await examineIssuers(authWith({ oidc: people.url }));
  assert.deepEqual([noKeys.status, noKeys.found], ['warning', 'auth.session.keys is not set']);
  const other = await examineIssuers(authWith({ jwt: `${people.url}/` }));
  assert.match(other.found, /names another issuer/);
  await programs.pause();
  assert.equal((await examineIssuers(authWith({ jwt: programs.url }))).status, 'problem');
});
