// Real curl with as many streams at once as the proxy advertises: no request is lost. curl resets a stream when it has as many
// bytes as were announced, even if the end of the stream is still on its way.
import { describe, expect, it } from 'vitest';
import { isInstalled, runClient, titleOf } from '../interop/client-programs.ts';
import type { H2Exchange } from '../support/h2-exchange.ts';
import { createH2Origin } from '../support/h2-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

const REQUESTS = 1_500;
const authority = createTestAuthority();
const body = '{"reply":"whole"}';
const fields = [['content-length', String(body.length)]] as const;

type Ending = { readonly title: string; respond(exchange: H2Exchange): Promise<void> };

const endings: readonly Ending[] = [
  {
    title: 'with the last bytes',
    async respond({ response }) {
      await response(200, fields, body);
    },
  },
  {
    title: 'in a frame of its own',
    async respond({ head, data }) {
      await head(200, fields);
      await data(body);
      setImmediate(() => void data('', { isEnd: true }));
    },
  },
];

describe.runIf(isInstalled('curl'))(titleOf('curl'), () => {
  it.each(endings)(
    'loses none of its parallel requests to a host that ends its responses $title',
    async ({ respond }) => {
      const origin = await createH2Origin({ tls: { authority, names: ['good.test'] }, respond });
      await using scratch = await createScratch();
      const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
      await using sallyport = await spawnSallyport({
        proxyConfig: { rules: [{ name: 'good', match_hosts: ['good.test'], headers }] },
        upstreamCaPem: authority.certificatePem,
        args: ['--secrets-file', await scratch.write('secrets.env', 'TOKEN=canary-4f1d9a7be2c8\n')],
      });
      const url = `https://good.test:${origin.port}/?[1-${REQUESTS}]`;
      const flags = ['--http2', '--parallel', '--parallel-max', '200', '--output', '/dev/null'];
      const proxy = { url: `http://127.0.0.1:${sallyport.port}`, caFile: sallyport.caFile };
      const write = ['--write-out', '%{http_code} %{exitcode}\n'];
      const { code, stdout } = await runClient('curl', [...flags, ...write, url], proxy);
      const lines = stdout.trim().split('\n');
      expect(lines.filter((line) => line !== '200 0')).toEqual([]);
      expect({ code, count: lines.length }).toEqual({ code: 0, count: REQUESTS });
      const refused = sallyport.process.records.filter(({ method }) => method === 'CONNECT');
      expect(refused).toEqual([]);
      await origin.close();
    },
  );
});
