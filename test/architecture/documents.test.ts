// The documents say nothing that is not there: files, scripts, variables, rooms, packages.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { platformVariables } from '../../src/platform/config.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { defaultLimits, defaultTimeouts } from '../../src/proxy/limits.ts';
import { refusalCatalogue } from '../../src/proxy/refusal.ts';
import { operatorVariables } from '../../src/sidecar/secret-environment.ts';
import { configVariables } from '../../src/sidecar/config.ts';
import { projectRoot } from '../support/spawned-process.ts';

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
const documents = ['README.md', 'ARCHITECTURE.md', 'SECURITY.md', 'CHANGELOG.md'];
/** Read by `platform init` alone. */
const bootstrap = ['SALLYPORT_BOOTSTRAP_API_KEY'];
const manifest = JSON.parse(read('package.json'));

const matches = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, found = '']) => found);

describe.each(documents)('%s', (name) => {
  const text = read(name);

  it('links and names only files that exist', () => {
    const files = [
      ...matches(text, /\]\((?!https?:)([^)#]+)\)/g),
      ...matches(text, /`((?:src|test|bin)\/[\w./-]+\.(?:ts|js))`/g),
    ];
    const later = ['src/proxy/streams.ts'];
    expect(files.filter((file) => !later.includes(file) && !existsSync(join(projectRoot, file)))).toEqual([]);
  });

  it('names only scripts that exist', () => {
    const scripts = matches(text, /\bnpm run ([\w:]+)/g);
    expect(scripts.filter((script) => !(script in manifest.scripts))).toEqual([]);
  });

  it('names only variables that the program reads', () => {
    const settings = [...configVariables(), ...platformVariables()];
    const known = [...settings.map((variable) => variable.name), ...operatorVariables, ...bootstrap];
    const named = matches(text, /\b(SALLYPORT_[A-Z_]+[A-Z])\b(?!_<)/g).filter(
      (variable) => variable !== 'SALLYPORT_SECRET',
    );
    expect(named.filter((variable) => !known.includes(variable))).toEqual([]);
  });
});

describe('ARCHITECTURE.md', () => {
  const text = read('ARCHITECTURE.md');

  it('stays readable in one sitting', () => expect(text.split('\n').length).toBeLessThan(150));

  it('shows every room', () => {
    const modules = readdirSync(join(projectRoot, 'src'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(modules.map((space) => `src/${space.name}/`).filter((space) => !text.includes(space))).toEqual([]);
  });

  it('names every package with its door', () => {
    for (const name of Object.keys(manifest.dependencies))
      expect(text).toMatch(new RegExp(`^\\| ${name} \\| \`\\w+/`, 'm'));
  });
});

describe('SECURITY.md', () => {
  const snake = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const bounds = [
    ...Object.entries(defaultLimits).map(([key, value]) => [`limits.${snake(key)}`, value] as const),
    ...Object.entries(defaultTimeouts).map(([key, value]) => [`timeouts.${snake(key)}`, value] as const),
  ];

  it('lists every bound with its default, and none that is not there', () => {
    const listed = [...read('SECURITY.md').matchAll(/^\| `((?:limits|timeouts)\.\w+)` \| (\d+) \|/gm)];
    expect(listed.map(([, key, value]) => [key, Number(value)])).toEqual(bounds);
  });
});

describe('README.md', () => {
  it('names refusals that are in the catalogue', () => {
    const [, paragraph = ''] = /among them ([^.]+)\./.exec(read('README.md')) ?? [];
    const codes = new Set(refusalCatalogue().map(({ code }) => code));
    const named = matches(paragraph, /`(\w+)`/g);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((code) => !codes.has(code))).toEqual([]);
  });

  it('has an example that is in order', () => {
    const [example = ''] = matches(read('README.md'), /```json\n([^]*?)```/g);
    expect(parseProxyConfig(JSON.parse(example))).toMatchObject({ ok: true, warnings: [] });
  });
});
