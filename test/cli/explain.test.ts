// `sallyport explain`, of a file and of a running proxy.
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { type Finished, program, runToEnd, spawnSallyport } from '../support/spawned-process.ts';

const explain = (...args: string[]): Promise<Finished> =>
  runToEnd(process.execPath, [program, 'explain', ...args]);

const rules = {
  rules: [
    {
      match_hosts: ['api.test'],
      headers: [{ name: 'X-Key', type: 'opaque', value: 'c4n4ry-c4n4ry-c4n4ry' }],
    },
  ],
  access_control: { deny_list: ['denied.test'] },
};

describe('explain', () => {
  it('shows what a file decides, without the query of the URL', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('rules.json', rules);
    const { code, stdout, stderr } = await explain('--proxy-config', file, 'https://api.test/v1?key=c4n4ry');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('request   GET https://api.test:443/v1\n');
    expect(stdout).toContain('outcome   injected\n');
    expect(stdout).toContain('headers   X-Key\n');
    expect(stdout).not.toContain('c4n4ry');
  });

  it('ends with code 1 for a request that would be refused', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('rules.json', rules);
    const { code, stdout } = await explain('--json', '--proxy-config', file, 'https://denied.test/');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'refused', refusal: { code: 'access_denied' } });
  });

  it('asks a running proxy', async () => {
    await using sallyport = await spawnSallyport({ proxyConfig: rules });
    const ready = await sallyport.process.record(({ msg }) => msg === 'ready');
    const admin = String(ready['admin']).replace('http://', '');
    const flags = ['--state-dir', dirname(dirname(sallyport.caFile)), '--admin-listen', admin];
    const { code, stdout } = await explain(...flags, 'https://api.test/');
    expect([code, stdout]).toEqual([0, expect.stringContaining('outcome   injected\n')]);
    const unknown = await explain(...flags, '--sandbox', 'none', 'https://api.test/');
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no sandbox none') });
  });

  it('says what to do if no proxy runs', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, 'secret'));
    await scratch.write('secret/admin-token', '0123456789abcdef');
    const flags = ['--state-dir', scratch.path, '--admin-listen', `unix:${scratch.path}/none.sock`];
    const { code, stderr } = await explain(...flags, 'https://api.test/');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /none\.sock cannot be reached \(ENOENT\): start `sallyport proxy`.*--proxy-config\n$/,
    );
  });

  it.each([
    [[], /missing URL\. Usage: sallyport explain/],
    [['api.test'], /absolute URL/],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await explain(...args);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});
