import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentPreload, withPreload } from '../../../src/cli/client/node-preload.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { runToEnd } from '../../support/spawned-process.ts';

let scratch: Scratch;
let file: string;

beforeAll(async () => {
  scratch = await createScratch();
  file = await scratch.write('agent-preload-0123456789abcdef.cjs', agentPreload);
});

afterAll(() => scratch[Symbol.asyncDispose]());

const PROXY = {
  NODE_USE_ENV_PROXY: '1',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  HTTP_PROXY: 'http://127.0.0.1:9',
};

/** Runs a script with the preload; returns what it printed. */
async function evaluate(script: string, env: Record<string, string> = PROXY): Promise<unknown> {
  const all = { ...env, NODE_OPTIONS: withPreload(undefined, file) };
  const { code, stdout, stderr } = await runToEnd(process.execPath, ['-e', script], { env: all });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

const http = "const http = require('node:http'), https = require('node:https');";
const show = (agent: string): string =>
  `${http} const agent = ${agent}; console.log(agent.options.proxyEnv === process.env)`;

describe('the preload', () => {
  it.each([
    ['an https.Agent', 'new https.Agent({ keepAlive: true })'],
    ['an http.Agent', 'new http.Agent()'],
    ['an Agent that was called without new', 'https.Agent({ maxSockets: 1 })'],
    ['the Agent of a request with `agent: false`', 'new https.globalAgent.constructor()'],
    ['a class that adds no connections of its own', 'new (class extends https.Agent {})()'],
    [
      'a class of the old style',
      '(() => { function Own(o) { http.Agent.call(this, o); } Object.setPrototypeOf(Own.prototype, http.Agent.prototype); return new Own(); })()',
    ],
  ])('gives the proxy to %s', async (_, agent) => expect(await evaluate(show(agent))).toBe(true));

  it.each([
    ['an Agent with a setting of its own', 'new https.Agent({ proxyEnv: {} })'],
    ['an Agent that wants no proxy', 'new https.Agent({ proxyEnv: undefined })'],
    ['a class that makes its own connections', 'new (class extends https.Agent { createConnection() {} })()'],
    [
      'a class of the old style that does',
      '(() => { function Own(o) { http.Agent.call(this, o); } Object.setPrototypeOf(Own.prototype, http.Agent.prototype); Own.prototype.createSocket = () => {}; return new Own(); })()',
    ],
  ])('leaves alone %s', async (_, agent) => expect(await evaluate(show(agent))).toBe(false));

  it('does nothing where the proxy variables are not used', async () =>
    expect(await evaluate(show('new https.Agent()'), {})).toBe(false));

  // What Node loads at a start decides how long the start takes.
  it('loads no more of the HTTP clients than the class that it changes', async () => {
    const script =
      'console.log(JSON.stringify(process.moduleLoadList.filter((name) => /http|tls|undici/.test(name))))';
    const { stdout } = await runToEnd(process.execPath, ['-e', script], { env: PROXY });
    const added = new Set((await evaluate(script)) as string[]).difference(new Set(JSON.parse(stdout)));
    expect([...added]).toEqual(['NativeModule https']);
  });

  it.each([
    ['sallyport', false],
    ['sallyport.js', false],
    ['my-sallyport.js', true],
  ])('leaves alone the agents of Sallyport itself: %s', async (name, isGiven) => {
    const program = await scratch.write(name, show('new https.Agent()'));
    const env = { ...PROXY, NODE_OPTIONS: withPreload(undefined, file) };
    expect(await runToEnd(process.execPath, [program], { env })).toMatchObject({
      stdout: `${isGiven}\n`,
      stderr: '',
    });
  });

  it('keeps what a program sees of the class', async () => {
    const script = `${http}
      const agent = new https.Agent({ keepAlive: true, maxSockets: 3 });
      console.log(JSON.stringify([
        agent instanceof https.Agent, agent instanceof http.Agent, agent.constructor === https.Agent,
        https.Agent.name, https.Agent.prototype === Object.getPrototypeOf(agent), agent.maxSockets, agent.keepAlive,
        Object.keys(require('node:https')).length === Object.keys(https).length,
      ]));`;
    expect(await evaluate(script)).toEqual([true, true, true, 'Agent', true, 3, true, true]);
  });

  it('reaches programs that import the class', async () => {
    const program = await scratch.write(
      'program.mjs',
      "import { Agent } from 'node:https'; console.log(new Agent().options.proxyEnv === process.env);",
    );
    const env = { ...PROXY, NODE_OPTIONS: withPreload(undefined, file) };
    expect(await runToEnd(process.execPath, [program], { env })).toMatchObject({
      stdout: 'true\n',
      stderr: '',
    });
  });
});

describe('NODE_OPTIONS', () => {
  const preload = '/t/agent-preload-0123456789abcdef.cjs';
  const added = `--require=${preload}`;
  it.each([
    ['nothing', undefined, added],
    ['an empty value', '', added],
    ['options of the caller', '--max-old-space-size=512', `--max-old-space-size=512 ${added}`],
    ['a preload of the caller', '--require=./agent-preload.cjs', `--require=./agent-preload.cjs ${added}`],
    [
      'a preload that Sallyport added before',
      '--a --require=/old/agent-preload-fedcba9876543210.cjs --b',
      `--a --b ${added}`,
    ],
  ])('with %s gets the preload once, at its end', (_, before, expected) =>
    expect(withPreload(before, preload)).toBe(expected),
  );
});
