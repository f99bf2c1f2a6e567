// `sallyport check`: every issue of every file at once, with the way into the file, and never what stood there.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { program, runToEnd, type Finished } from '../support/spawned-process.ts';

// Of a length that no other number in the output has.
const CANARY = 'c4n4ry'.repeat(117);

const check = (...files: string[]): Promise<Finished> =>
  runToEnd(process.execPath, [program, 'check', ...files]);

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
    expect([code, stdout, stderr]).toEqual([
      0,
      `${config}: valid config\n${rules}: valid proxy_config\n`,
      '',
    ]);
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
    expect(stdout).toMatch(/config\.json: not a valid config: \d errors\n/);
    expect(stdout).toMatch(/rules\.json: not a valid proxy_config: \d errors\n/);
  });

  it('continues after a file that cannot be read', async () => {
    await using scratch = await createScratch();
    const broken = await scratch.write('broken.json', '{"value": "private-value" oops}');
    const good = await scratch.write('good.json', { rules: [] });
    const { code, stdout, stderr } = await check('/nonexistent.json', broken, good);
    expect(code).toBe(2);
    expect(stdout + stderr).toContain('/nonexistent.json cannot be read: ENOENT');
    expect(stdout + stderr).toContain(`${broken}:1:27: not valid JSON`);
    expect(stdout).toContain(`${good}: valid proxy_config\n`);
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
    expect(stdout).toContain(`${rules}: valid proxy_config\n`);
  });

  it('reports errors of structure and of meaning together', async () => {
    await using scratch = await createScratch();
    const rules = await scratch.write('rules.json', {
      rules: [
        { match_hosts: ['*.com'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'x' }] },
        { match_hosts: ['api.test'], headers: [{ name: 'a b', type: 'plaintext', value: 'x' }] },
      ],
      access_control: { deny_list: ['10.0.0.0/8'] },
    });
    const { stdout } = await check(rules);
    expect(stdout).toContain('rules[0].match_hosts[0]: ');
    expect(stdout).toContain('rules[1].headers[0].name: ');
  });

  it('accepts what GET /v1/proxy_config returns, and its stored values', async () => {
    await using scratch = await createScratch();
    const headers = [{ name: 'X-Key', type: 'opaque', is_set: true }];
    const document = { rules: [{ match_hosts: ['api.test'], headers }] };
    const file = await scratch.write('got.json', { proxy_config: document, revision: 3, etag: '"a"' });
    expect(await check(file)).toMatchObject({
      code: 0,
      stdout: `${file}: valid proxy_config, as the admin API returns it\n`,
    });
    const wrong = await scratch.write('wrong.json', { proxy_config: { rules: [{ match_hosts: [] }] } });
    expect((await check(wrong)).stdout).toContain(`${wrong}: proxy_config.rules[0].match_hosts: `);
    const plain = await scratch.write('plain.json', document);
    expect((await check(plain)).stdout).toContain(`${plain}: rules[0].headers[0].value: Field required`);
  });

  it('reads standard input for -', async () => {
    const script = `printf '%s' '{"rules": []}' | ${process.execPath} ${program} check -`;
    const { code, stdout } = await runToEnd('sh', ['-c', script]);
    expect([code, stdout]).toEqual([0, 'standard input: valid proxy_config\n']);
  });

  it('with --secrets-dir names secrets that do not exist, and shows no secret', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, 'secrets'));
    await scratch.write('secrets/KNOWN', CANARY);
    const header = (name: string, value: string) => ({ name, type: 'workspace_secret', value });
    const rules = await scratch.write('rules.json', {
      rules: [
        { match_hosts: ['api.test'], headers: [header('X-A', '{KNOWN}'), header('X-B', 'Bearer {ABSENT}')] },
      ],
    });
    const { code, stdout, stderr } = await check('--secrets-dir', join(scratch.path, 'secrets'), rules);
    expect(code).toBe(2);
    expect(stdout).toContain('rules[0].headers[1].value: The workspace secret ABSENT does not exist');
    expect(stdout).not.toContain('headers[0]');
    // Of valid rules also where another one is invalid.
    const invalid = { match_hosts: [], headers: [header('X-C', '{OTHER}')] };
    const absent = { match_hosts: ['api.test'], headers: [header('X-B', '{ABSENT}')] };
    const both = await scratch.write('both.json', { rules: [invalid, absent] });
    const found = (await check('--secrets-dir', join(scratch.path, 'secrets'), both)).stdout;
    expect(found).toContain('rules[0].match_hosts: ');
    expect(found).toContain('rules[1].headers[0].value: The workspace secret ABSENT does not exist');
    expect(found).toContain('both.json: not a valid proxy_config: 2 errors\n');
    expect(stdout + stderr).not.toMatch(new RegExp(`${CANARY}|\\b${CANARY.length}\\b`));
    expect(await check(rules)).toMatchObject({ code: 0 });
  });

  it('with --json prints one document', async () => {
    await using scratch = await createScratch();
    const good = await scratch.write('good.json', { rules: [] });
    const bad = await scratch.write('bad.json', { rules: [{}] });
    const { code, stdout, stderr } = await check('--json', good, bad, '/nonexistent.json');
    expect([code, stderr]).toEqual([2, '']);
    expect(JSON.parse(stdout)).toMatchObject({
      files: [
        { file: good, kind: 'proxy_config', valid: true, issues: [], warnings: [] },
        {
          file: bad,
          valid: false,
          issues: expect.arrayContaining([expect.objectContaining({ type: 'missing' })]),
        },
        { kind: null, valid: false, error: expect.stringContaining('ENOENT') },
      ],
    });
  });

  it('without a file says what is missing', async () => {
    const { code, stderr } = await check();
    expect([code, stderr]).toEqual([
      2,
      'sallyport: missing FILE. Usage: sallyport check [OPTIONS] FILE...\n',
    ]);
  });
});
