import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderOf, load, loadYaml, problemOf, problemsOf } from '../../../tests/support/test-config.ts';

const serviceWith = (text: string) => loadYaml(`services: {shop: ${text}}`).services[0] ?? assert.fail();

/** Where the problems of a service are. */
const wrong = (text: string): string =>
  problemsOf(() => loadYaml(`services: {shop: ${text}}`))
    .map(({ path }) => path.replace(/^services\.shop\.?/, ''))
    .join();

test('without a word about sagas there are no services, and every default holds', () => {
  const { saga, services } = load({});
  assert.deepEqual(services, []);
  assert.deepEqual(saga, {
    workflowDir: 'workflows',
    maxConcurrent: 100,
    leaseSecs: 15,
    eventsTopic: 'redrive.saga.state_changed.v1',
    retentionMs: 30 * 86_400_000,
    archiveRetentionMs: 400 * 86_400_000,
    autoResume: true,
  });
});

test('a service over HTTP needs its address only', () => {
  assert.deepEqual(serviceWith('{type: http, base_url: "http://127.0.0.1:9300"}'), {
    name: 'shop',
    type: 'http',
    baseUrl: 'http://127.0.0.1:9300',
    maxInFlight: 50,
    isIdempotent: true,
    headers: {},
    tls: undefined,
  });
});

test('a service over gRPC is known by a .proto file, by a folder of them, or by what it tells of itself', () => {
  const folder = folderOf({ 'shop.proto': 'syntax = "proto3";' });
  const grpc = { name: 'shop', type: 'grpc', host: '127.0.0.1', port: 50_051, maxInFlight: 50, headers: {} };
  for (const proto of [folder, join(folder, 'shop.proto')])
    assert.deepEqual(serviceWith(`{type: grpc, host: 127.0.0.1, port: 50051, proto: "${proto}"}`), {
      ...grpc,
      isIdempotent: true,
      proto,
      tls: undefined,
    });
  assert.deepEqual(serviceWith('{type: grpc, host: 127.0.0.1, port: 50051, reflection: true}'), {
    ...grpc,
    isIdempotent: true,
    proto: null,
    tls: undefined,
  });
});

test('the services of the platform are as they are written there', () => {
  const { services } = loadYaml(`services:
  shipping: {type: grpc, host: 127.0.0.1, port: 50052, reflection: true}
  payment: {type: http, base_url: "http://127.0.0.1:9300"}`);
  assert.deepEqual(
    services.map(({ name, type }) => [name, type]),
    [
      ['shipping', 'grpc'],
      ['payment', 'http'],
    ],
  );
});

test('a service may say everything', () => {
  const folder = folderOf({ token: 'Bearer one\n', 'ca.pem': 'CA', 'cert.pem': 'CERT', 'key.pem': 'KEY' });
  const path = (name: string): string => join(folder, name);
  const tls = `{ca: "${path('ca.pem')}", cert: "${path('cert.pem')}", key: "${path('key.pem')}"}`;
  const common = `max_in_flight: 3, idempotent: false, headers: {Authorization: {file: "${path('token')}"}}, tls: ${tls}`;
  for (const service of [
    serviceWith(`{type: http, base_url: "https://shop.example.com/v1", ${common}}`),
    serviceWith(`{type: grpc, host: shop.example.com, port: 443, reflection: true, ${common}}`),
  ]) {
    assert.deepEqual([service.maxInFlight, service.isIdempotent], [3, false]);
    assert.equal(service.headers['Authorization']?.(), 'Bearer one');
    assert.deepEqual([service.tls?.ca, service.tls?.cert, service.tls?.key], ['CA', 'CERT', 'KEY']);
  }
});

test('an empty map asks for TLS over gRPC; without it there is none', () => {
  const grpc = (more: string) => serviceWith(`{type: grpc, host: a, port: 1, reflection: true${more}}`);
  assert.equal(grpc('').tls, undefined);
  assert.notEqual(grpc(', tls: {}').tls, undefined);
});

test('one service has half of all calls, and at least one', () => {
  const shareOf = (most: number): number | undefined =>
    loadYaml(`{saga: {max_concurrent: ${most}}, services: {shop: {type: http, base_url: "http://a"}}}`)
      .services[0]?.maxInFlight;
  assert.deepEqual([shareOf(1), shareOf(3), shareOf(100)], [1, 1, 50]);
});

test('a service that cannot be called is a problem before the first saga', () => {
  assert.equal(wrong('{base_url: "http://a"}'), 'type');
  assert.equal(wrong('{type: soap, base_url: "http://a"}'), 'type');
  assert.equal(wrong('{type: http}'), 'base_url');
  assert.equal(wrong('{type: http, base_url: "ftp://a"}'), 'base_url');
  assert.equal(wrong('{type: http, base_url: "http://user:pw@a"}'), 'base_url');
  assert.equal(wrong('{type: grpc, reflection: true}'), 'host,port');
  assert.equal(wrong('{type: grpc, host: a, port: 0, reflection: true}'), 'port');
  assert.equal(wrong('{type: grpc, host: a, port: 1, proto: /nonexistent}'), 'proto');
  assert.equal(wrong('{type: http, base_url: "http://a", max_in_flight: 0}'), 'max_in_flight');
  assert.equal(
    wrong('{type: http, base_url: "http://a", headers: {Idempotency-Key: x}}'),
    'headers.Idempotency-Key',
  );
  assert.equal(
    wrong('{type: http, base_url: "https://a", headers: {X-Token: {file: /nonexistent}}}'),
    'headers.X-Token.file',
  );
  for (const type of ['type: http, base_url: "https://a"', 'type: grpc, host: a, port: 1, reflection: true'])
    assert.equal(wrong(`{${type}, tls: {ca: /nonexistent}}`), 'tls.ca');
});

test('the types of a gRPC service come from one place', () => {
  const reason = (more: string): string =>
    problemOf(() => loadYaml(`services: {shop: {type: grpc, host: a, port: 1${more}}}`)).reason;
  assert.equal(reason(''), 'must have either proto or reflection: true');
  assert.equal(reason(', proto: /tmp, reflection: true'), 'must not have both proto and reflection');
});

test('a certificate and its key come together, over HTTP and over gRPC', () => {
  const folder = folderOf({ 'cert.pem': 'PEM' });
  const cert = join(folder, 'cert.pem');
  for (const type of [
    'type: http, base_url: "https://a"',
    'type: grpc, host: a, port: 1, reflection: true',
  ]) {
    assert.equal(wrong(`{${type}, tls: {cert: "${cert}"}}`), 'tls.key');
    assert.equal(wrong(`{${type}, tls: {key: "${cert}"}}`), 'tls.cert');
  }
  const { warnings } = loadYaml(`services: {shop: {type: http, base_url: "http://a", tls: {ca: "${cert}"}}}`);
  assert.deepEqual(warnings, ['services.shop.tls is not used: services.shop.base_url begins with http:']);
});

test('a key that is wrong by a letter is told by its nearest', () => {
  const problem = problemOf(() =>
    loadYaml('services: {shop: {type: http, base_url: "http://a", idempotency: true}}'),
  );
  assert.deepEqual([problem.path, problem.suggestion], ['services.shop.idempotency', 'idempotent']);
  assert.equal(problemOf(() => loadYaml('saga: {workflows_dir: x}')).suggestion, 'saga.workflow_dir');
  assert.equal(
    problemOf(() => loadYaml('services: {Shop: {type: http, base_url: "http://a"}}')).suggestion,
    'shop',
  );
});

test('what a saga setting may be has bounds', () => {
  for (const [setting, path] of [
    ['lease_secs: 2', 'saga.lease_secs'],
    ['max_concurrent: 0', 'saga.max_concurrent'],
    ['retention: 1s', 'saga.retention'],
    ['archive_retention: 400', 'saga.archive_retention'],
    ['events_topic: "a b"', 'saga.events_topic'],
    ['workflow_dir: ""', 'saga.workflow_dir'],
  ] as const)
    assert.equal(problemOf(() => loadYaml(`saga: {${setting}}`)).path, path);
});

test('every key of a service that a file names has its variable, and null removes it', () => {
  const files = {
    'config.yaml':
      'services: {shop: {type: http, base_url: "http://a"}, old: {type: http, base_url: "http://b"}}',
  };
  const { services, saga } = load({
    files: { ...files, 'config.dev.yaml': 'services: {old: null}' },
    env: {
      SAGA_WORKFLOW_DIR: '/etc/workflows',
      SAGA_MAX_CONCURRENT: '8',
      SERVICES_SHOP_BASE_URL: 'http://c',
      SERVICES_SHOP_IDEMPOTENT: 'false',
    },
  });
  assert.deepEqual([saga.workflowDir, saga.maxConcurrent], ['/etc/workflows', 8]);
  assert.equal(services.length, 1);
  const [shop] = services;
  assert.deepEqual(
    [shop?.type === 'http' && shop.baseUrl, shop?.isIdempotent, shop?.maxInFlight],
    ['http://c', false, 4],
  );
});
