// `sallyport check`: every issue of every file at once, with the way into the file, and never what stood there.
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { launcher, runToEnd, type Finished } from '../support/spawned-process.ts';

const check = (...files: string[]): Promise<Finished> =>
  runToEnd(process.execPath, [launcher, 'check', ...files]);

describe('check', () => {
  it('accepts valid files of both kinds', async () => {
    await using scratch = await createScratch();
    const config = await scratch.write('config.json', {
      listen: '127.0.0.1:3128',
      limits: { max_connections: 10 },
    });
    const rules = await scratch.write('rules.json', {
      rules: [
        { match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'workspace_secret', value: '{KEY}' }] },
      ],
    });
    const { code, stdout, stderr } = await check(config, rules);
    expect([code, stdout, stderr]).toEqual([0, `${config}: valid\n${rules}: valid\n`, '']);
  });

  it('lists every issue of every file, and ends with code 2', async () => {
    await using scratch = await createScratch();
    const config = await scratch.write('config.json', {
      listen: 'nowhere',
      timeouts: { head_ms: -1 },
      colour: 'red',
    });
    const rules = await scratch.write('rules.json', {
      rules: [
        {
          match_hosts: ['https://api.test/x'],
          headers: [{ name: 'a b', type: 'plaintext', value: 'private-value\r\n' }],
        },
        { match_hosts: [], headers: [], surprise: 1 },
      ],
    });
    const { code, stdout } = await check(config, rules);
    expect(code).toBe(2);
    for (const place of [
      `${config}: listen: `,
      `${config}: timeouts.head_ms: `,
      `${rules}: rules[0].match_hosts[0]: `,
      `${rules}: rules[0].headers[0].name: `,
      `${rules}: rules[0].headers[0].value: `,
      `${rules}: rules[1].`,
    ])
      expect(stdout).toContain(place);
    expect(stdout).toMatch(/colour/);
    expect(stdout).toMatch(/surprise/);
    expect(stdout).not.toContain('private-value');
    expect(stdout).not.toContain(': valid');
  });

  it('continues after a file that cannot be read', async () => {
    await using scratch = await createScratch();
    const broken = await scratch.write('broken.json', '{"value": "private-value" oops}');
    const good = await scratch.write('good.json', { rules: [] });
    const { code, stdout, stderr } = await check('/nonexistent.json', broken, good);
    expect(code).toBe(2);
    expect(stdout + stderr).toContain('/nonexistent.json cannot be read: ENOENT');
    expect(stdout + stderr).toContain(`${broken}:1:27: not valid JSON`);
    expect(stdout).toContain(`${good}: valid\n`);
    expect(stdout + stderr).not.toContain('private-value');
  });

  it('warns of what is valid but probably not intended, and ends with code 0', async () => {
    await using scratch = await createScratch();
    const rules = await scratch.write('rules.json', {
      rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'x' }] }],
      no_proxy: ['api.test'],
    });
    const { code, stdout } = await check(rules);
    expect(code).toBe(0);
    expect(stdout).toMatch(/rules\.json: warning: no_proxy\[0\]: /);
    expect(stdout).toContain(`${rules}: valid\n`);
  });

  it('without a file prints its usage', async () => {
    const { code, stderr } = await check();
    expect([code, stderr]).toEqual([2, 'usage: sallyport check FILE...\n']);
  });
});
