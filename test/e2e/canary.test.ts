// I5 for the whole command: a secret of each kind is provided, used, misused, stored and used again, and is nowhere where it
// does not belong, in no form. Then one is planted in each sink, in each form, and found.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { headerValues } from '../support/message-reader.ts';
import { type Agent, failInEveryWay, succeed } from './canary-agent.ts';
import { operatorsDocument, secretEverywhere, tenantsDocument, VISIBLE } from './canary-documents.ts';
import { administer, readEverything, writeWrongly } from './canary-operator.ts';
import { type CanaryProxy, type CanaryScene, createCanaryScene } from './canary-scene.ts';
import { type Canary, encodings, findLeaks } from './canary-search.ts';
import { keyCanaries, textCanary, toCanaries } from './canary-values.ts';

const OPERATORS = ['file.test', 'variable.test', 'opaque.test', 'called.test', 'plain.test'];
const TENANTS = ['admin.test', 'opaque.test', 'called.test'];
/** The secrets that a file is meant to contain. */
const PURPOSE: ReadonlyMap<string, string> = new Map([
  ['caKey', 'file secret/ca.key'],
  ['caKeyLine', 'file secret/ca.key'],
]);

describe.runIf(process.platform === 'linux')('canaries', () => {
  let scene: CanaryScene;
  let canaries: readonly Canary[];
  let madeToken = '';
  let refusals: readonly number[] = [];
  const exits: (number | null)[] = [];

  beforeAll(async () => {
    scene = await createCanaryScene();
    const { values, peers } = scene;
    await writeFile(scene.proxyConfigFile, JSON.stringify(operatorsDocument(values, peers)));
    await liveWithFile();
    await liveOnState();
    await failToStart();
    const key = await readFile(join(scene.stateDir, 'secret', 'ca.key'), 'utf8');
    canaries = [...toCanaries(values), textCanary('madeToken', madeToken), ...keyCanaries(key)];
  }, 120_000);

  afterAll(() => scene?.[Symbol.asyncDispose]());

  /** Sets everything up, uses and misuses it. */
  async function liveWithFile(): Promise<void> {
    await using proxy = await scene.start();
    const [operators, ...tenants] = await createAgents(proxy);
    await succeed(scene, operators, OPERATORS);
    for (const agent of tenants) await succeed(scene, agent, TENANTS);
    await failInEveryWay(scene, operators);
    refusals = await writeWrongly(scene, proxy);
    await reloadWrongly(proxy);
    // Stored for the next start, which has no file.
    const body = { proxy_config: operatorsDocument(scene.values, scene.peers) };
    await administer(scene, proxy, '/v1/proxy_config', { method: 'PUT', body });
    await readEverything(scene, proxy);
    exits.push(await proxy.stop());
  }

  /** Uses, reads and changes the sealed state. */
  async function liveOnState(): Promise<void> {
    await using proxy = await scene.start({ withProxyConfig: false });
    const { proxyToken, changedToken: token } = scene.values;
    await administer(scene, proxy, '/v1/sandboxes/tenant', { method: 'PATCH', body: { token } });
    await succeed(scene, agentOf(proxy, proxyToken), OPERATORS);
    await succeed(scene, agentOf(proxy, token), TENANTS);
    await readEverything(scene, proxy);
    await administer(scene, proxy, '/v1/sandboxes/own', { method: 'DELETE' });
    exits.push(await proxy.stop());
  }

  async function failToStart(): Promise<void> {
    const { opaque, wrongAdminToken: wrong, wrongStateKey } = scene.values;
    const beside = (name: string): string => join(scene.stateDir, '..', name);
    await writeFile(beside('bad.json'), JSON.stringify(secretEverywhere(opaque)[3]));
    const elsewhere = { SALLYPORT_STATE_DIR: beside('elsewhere') };
    exits.push(
      ...(await Promise.all([
        scene.fail(['proxy'], { SALLYPORT_STATE_KEY: wrongStateKey.toString('base64') }),
        scene.fail(['proxy'], { ...elsewhere, SALLYPORT_STATE_KEY: `${wrongStateKey.toString('base64')}x` }),
        scene.fail(['proxy'], { ...elsewhere, SALLYPORT_ADMIN_TOKEN: `${wrong} ${wrong}` }),
        scene.fail(['check', beside('bad.json')], {}),
      ])),
    );
  }

  /** One of the operator's sandbox, one with a token on the same listener, and one on a listener of its own. */
  async function createAgents(proxy: CanaryProxy): Promise<[Agent, Agent, Agent]> {
    const { adminSecret, sandboxToken, proxyToken } = scene.values;
    const proxy_config = tenantsDocument(scene.values, scene.peers);
    const common = { proxy_config, workspace_secrets: { ADMIN_SECRET: adminSecret } };
    const create = (more: object, reportsToken: boolean): ReturnType<typeof administer> =>
      administer(scene, proxy, '/v1/sandboxes', {
        method: 'POST',
        body: { ...common, ...more },
        reportsToken,
      });
    await create({ id: 'tenant', token: sandboxToken }, false);
    const { body: own } = await create({ id: 'own', listen: '127.0.0.1:0', token: 'generate' }, true);
    madeToken = String(own['token']);
    const port = Number(new URL(String(own['proxy'])).port);
    return [agentOf(proxy, proxyToken), agentOf(proxy, sandboxToken), { ...agentOf(proxy, madeToken), port }];
  }

  /** SIGHUP with invalid files, each reported on standard error and in the log. */
  async function reloadWrongly({ process }: CanaryProxy): Promise<void> {
    const { opaque, fileSecret } = scene.values;
    const secretFile = join(scene.secretsDir, 'FILE_SECRET');
    const good = await readFile(scene.proxyConfigFile, 'utf8');
    let reported = 0;
    const reload = async (file: string, text: string): Promise<void> => {
      await writeFile(file, text);
      reported += 1;
      process.kill('SIGHUP');
      await process.record(() => process.records.filter(({ level }) => level === 'error').length >= reported);
    };
    for (const document of secretEverywhere(opaque))
      await reload(scene.proxyConfigFile, JSON.stringify(document));
    await reload(scene.proxyConfigFile, good.replace('"rules":', `"rules": ${opaque}`));
    await writeFile(scene.proxyConfigFile, good);
    await reload(secretFile, `${fileSecret}\n${fileSecret}`);
    await writeFile(secretFile, fileSecret);
  }

  function agentOf({ port, caPem }: CanaryProxy, token: string): Agent {
    return { port, caPem, token };
  }

  it('the requests had the expected results', () => {
    const asked = scene.statuses.filter((line) => !/ (400|401|404|405|412|413|415|417|422)$/.test(line));
    const echoes = (hosts: readonly string[]): string[] => [
      ...hosts.map((host) => `${host}/echo 302`),
      'opaque.test/upgrade 101',
    ];
    const failing = ['untrusted', 'lost', 'refused'].map((name) => `${name}.test/echo 502`);
    const spoilt = ['malformed', 'proxy-auth', 'reset'].map((path) => `opaque.test/${path} 502`);
    expect(asked).toEqual([
      ...['POST /v1/sandboxes 201', 'POST /v1/sandboxes 201'],
      ...[...echoes(OPERATORS), ...echoes(TENANTS), ...echoes(TENANTS)],
      ...[...failing, ...spoilt, 'opaque.test/cut 200'],
      ...Array.from({ length: 7 }, () => 'uncalled.test/echo 502'),
      ...['opaque.test/echo 407', 'in plaintext 403'],
      'PUT /v1/proxy_config 200',
      'PATCH /v1/sandboxes/tenant 200',
      ...[...echoes(OPERATORS), ...echoes(TENANTS)],
      'DELETE /v1/sandboxes/own 204',
    ]);
    expect(refusals.filter((status) => !(status >= 400))).toEqual([]);
    expect([...new Set(refusals)].toSorted()).toEqual([400, 401, 404, 405, 412, 413, 415, 417, 422]);
    expect(exits).toEqual([0, 0, 2, 2, 2, 2]);
  });

  it('each secret was used', () => {
    const { origin, callback } = scene.peers;
    const { values } = scene;
    const arrived = origin.requests.flatMap((request) => [
      ...headerValues(request, 'authorization'),
      ...headerValues(request, 'x-api-key'),
    ]);
    const count = (value: string): number => arrived.filter((one) => one === value).length;
    expect([
      count(`Bearer ${values.fileSecret}`),
      count(values.variableSecret),
      count(`Bearer ${values.adminSecret}`),
      count(`Bearer ${values.callbackResult}`),
    ]).toEqual([2, 2, 3, 5]);
    expect([count(`Bearer ${values.opaque}`), count(values.opaque)]).toEqual([8, 6]);
    const shared = callback.calls.flatMap((call) => headerValues(call, 'x-shared'));
    expect(new Set(shared)).toEqual(new Set([values.callbackHeader]));
    expect(shared).toHaveLength(12);
  });

  it('every sink was searched, and has the expected content', () => {
    const marks: readonly (readonly [sink: string, ...texts: string[]])[] = [
      ['standard output', '"msg":"ready"', '"msg":"reload failed', '"level":"error"'],
      [
        'standard error',
        'rules[1].name: Input must be a string',
        'cannot be decrypted',
        'the admin token must be',
      ],
      [
        'records',
        '"outcome":"injected"',
        '"reason":"callback_failed"',
        '"action":"sandbox.create"',
        '"status":422',
      ],
      [
        'admin responses',
        VISIBLE,
        '"is_set":true',
        '"key":"ADMIN_SECRET"',
        'BEGIN CERTIFICATE',
        '"loc":["body"',
      ],
      ['agent responses', '*****', 'callback resolution failed', '103 ', '101 '],
      ['/proc/PID/environ', 'SALLYPORT_STATE_DIR='],
      ['/proc/PID/cmdline', 'sallyport.js'],
      ['/proc/PID/comm', '\n'],
      ['/proc/PID/status', 'VmRSS'],
      ['file secret/ca.key', 'PRIVATE KEY'],
      ['file public/ca.pem', 'BEGIN CERTIFICATE'],
      ['file public/ca-bundle.pem', 'BEGIN CERTIFICATE'],
      ['file secret/state.lock', '\n'],
      ...['default', 'tenant', 'own'].map(
        (id) => [`file secret/sandboxes/${id}.sealed`, 'sallyport state'] as const,
      ),
    ];
    expect([...scene.sinks.keys()].toSorted()).toEqual(marks.map(([sink]) => sink).toSorted());
    const missing = marks.flatMap(([sink, ...texts]) =>
      texts.filter((text) => !scene.sinks.get(sink)?.includes(text)).map((text) => `${sink}: ${text}`),
    );
    expect(missing).toEqual([]);
  });

  it('no secret is in a sink where it does not belong', () => {
    const found = [...scene.sinks].flatMap(([sink, bytes]) =>
      findLeaks(
        sink,
        bytes,
        canaries.filter(({ name }) => PURPOSE.get(name) !== sink),
      ),
    );
    expect(found).toEqual([]);
  });

  it.each(encodings)('planted as %s, a secret of each kind is found in each sink', (_, encode) => {
    const sinks = [...scene.sinks];
    const plant = (sink: string, bytes: Buffer, canary: Canary): readonly string[] => {
      const middle = bytes.length >> 1;
      const planted = [bytes.subarray(0, middle), encode(canary.value), bytes.subarray(middle)];
      return findLeaks(sink, Buffer.concat(planted.map((piece) => Buffer.from(piece))), [canary]);
    };
    const rounds = Math.max(sinks.length, canaries.length);
    for (let i = 0; i < rounds; i += 1) {
      const [sink, bytes] = sinks[i % sinks.length] ?? ['', Buffer.alloc(0)];
      const canary = canaries[i % canaries.length] as Canary;
      expect(plant(sink, bytes, canary)).toEqual([expect.stringContaining(`${canary.name} in ${sink}, `)]);
    }
  });
});
