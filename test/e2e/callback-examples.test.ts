// The callback endpoints of config/callbacks: docs/callbacks.md quotes them, and they serve a real proxy.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOrigin } from '../support/recording-origin.ts';
import { projectRoot, SpawnedProcess, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

const KEY = 'canary-key-of-the-endpoint';
const examples = [
  ['endpoint.mjs', 'js', process.execPath],
  ['endpoint.py', 'python', 'python3'],
] as const;

describe.each(examples)('config/callbacks/%s', (name, language, runtime) => {
  const file = join(projectRoot, 'config', 'callbacks', name);
  const start = () => new SpawnedProcess(runtime, [file], { env: { CALLBACK_KEY: KEY, PORT: '0' } });
  const urlOf = async (endpoint: SpawnedProcess): Promise<string> => {
    const output = await endpoint.output((text) => text.includes('\n'));
    return output.trim().replace('listening on ', '');
  };

  it('is quoted in docs/callbacks.md as it is', async () => {
    const page = await readFile(join(projectRoot, 'docs', 'callbacks.md'), 'utf8');
    const text = await readFile(file, 'utf8');
    expect(page).toContain(`\`\`\`${language} file=${name}\n${text}\`\`\`\n`);
  });

  it('gives a proxy the header for a host', async () => {
    const authority = createTestAuthority();
    await using origin = await createOrigin({ tls: { authority, names: ['crm.test'] } });
    await using endpoint = start();
    const callback = {
      ...{ match_hosts: ['crm.test'], url: await urlOf(endpoint), ttl_seconds: 60 },
      request_headers: [{ name: 'X-Callback-Key', type: 'opaque', value: KEY }],
    };
    await using proxy = await spawnSallyport({
      proxyConfig: { callbacks: [callback] },
      upstreamCaPem: authority.certificatePem,
    });
    const target = `crm.test:${origin.port}`;
    const ca = await readFile(proxy.caFile, 'utf8');
    await using client = await WireClient.connectThrough(proxy.port, target, { ca, name: 'crm.test' });
    await client.send(`GET / HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    expect((await client.readResponse()).head.status).toBe(200);
    expect(origin.requests[0]?.headers).toContainEqual([
      'Authorization',
      'Bearer short-lived-token-for-crm.test',
    ]);
  });

  it('rejects a caller without the key, and a body that is no JSON', async () => {
    await using endpoint = start();
    const url = await urlOf(endpoint);
    const post = async (key: string, body: string): Promise<number> => {
      const response = await fetch(url, { method: 'POST', headers: { 'X-Callback-Key': key }, body });
      return response.status;
    };
    expect(await post('another-key-of-the-endpoint', '{"host":"crm.test","port":443}')).toBe(403);
    expect(await post('', '{"host":"crm.test","port":443}')).toBe(403);
    expect(await post(KEY, 'crm.test')).toBe(500);
    expect(await post(KEY, '{"host":"crm.test","port":443}')).toBe(200);
  });
});
