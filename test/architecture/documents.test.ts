// The documents name only what exists: files, scripts, variables, folders, packages, and list every setting and error code.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultLimits as platformLimits } from '../../src/platform/api/limits.ts';
import { parseGraphFile } from '../../src/platform/agent-server/configuration/graph-file.ts';
import { agentVariables } from '../../src/platform/agent-server/configuration/settings.ts';
import { parsePlatformConfig, platformVariables } from '../../src/platform/config.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { defaultLimits, defaultTimeouts } from '../../src/proxy/limits.ts';
import { operatorVariables } from '../../src/sidecar/secret-environment.ts';
import { configVariables } from '../../src/sidecar/config.ts';
import { deployVariables } from '../../src/cli/unknown-variables.ts';
import { configurationReference } from '../../scripts/configuration-reference.ts';
import { errorReference } from '../../scripts/error-reference.ts';
import { projectRoot } from '../support/spawned-process.ts';
import { packageOf, readSources } from './source-tree.ts';

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
// docs/benchmark is written by the benchmark.
const pages = readdirSync(join(projectRoot, 'docs'))
  .filter((page) => page !== 'benchmark')
  .map((page) => `docs/${page}`);
const documents = ['README.md', 'ARCHITECTURE.md', 'SECURITY.md', 'CHANGELOG.md', 'AGENTS.md', ...pages];
/** Read by `platform init` alone. */
const bootstrap = ['SALLYPORT_BOOTSTRAP_API_KEY'];
const manifest = JSON.parse(read('package.json'));

const matches = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, found = '']) => found);

const withoutCode = (text: string): string => text.replaceAll(/^```[^]*?^```$/gm, '');

/** The anchors of its headings, as GitHub makes them. */
function anchorsOf(text: string): readonly string[] {
  const headings = matches(withoutCode(text), /^#+ (.+)$/gm);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

describe.each(documents)('%s', (name) => {
  const text = read(name);

  it('links and names only files that exist', () => {
    const files = [
      ...matches(text, /\]\((?!https?:)([^)#]+)\)/g),
      ...matches(text, /`((?:src|test|bin)\/[\w./-]+\.(?:ts|js))`/g),
    ];
    const exists = (file: string): boolean =>
      existsSync(join(projectRoot, dirname(name), file)) || existsSync(join(projectRoot, file));
    expect(files.filter((file) => !exists(file))).toEqual([]);
  });

  it('links only to headings that exist', () => {
    const links = matches(withoutCode(text), /\]\(((?!https?:)[^)]*#[^)]+)\)/g);
    const isThere = (link: string): boolean => {
      const [file = '', anchor = ''] = link.split('#');
      const target = file === '' ? name : join(dirname(name), file);
      return anchorsOf(read(target)).includes(anchor);
    };
    expect(links.filter((link) => !isThere(link))).toEqual([]);
  });

  it('names only scripts that exist', () => {
    const scripts = matches(text, /\bnpm run ([\w:]+)/g);
    expect(scripts.filter((script) => !(script in manifest.scripts))).toEqual([]);
  });

  it('names only variables that the program reads', () => {
    const settings = [...configVariables(), ...platformVariables()];
    const names = settings.map((variable) => variable.name);
    const known = [...names, ...agentVariables, ...operatorVariables, ...bootstrap, ...deployVariables];
    const named = matches(text, /\b(SALLYPORT_[A-Z_]+[A-Z])\b(?!_<)/g).filter(
      (variable) => variable !== 'SALLYPORT_SECRET',
    );
    expect(named.filter((variable) => !known.includes(variable))).toEqual([]);
  });
});

describe('ARCHITECTURE.md', () => {
  const text = read('ARCHITECTURE.md');

  it('has at most 150 lines', () => expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(150));

  it('has a glossary of at most 40 terms', () => {
    const [, glossary = ''] = text.split('## Glossary');
    expect(matches(glossary, /^\| ([\w ]+) \|/gm).length - 1).toBeLessThanOrEqual(40);
  });

  it('shows every folder', () => {
    const modules = readdirSync(join(projectRoot, 'src'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(modules.map((space) => `src/${space.name}/`).filter((space) => !text.includes(space))).toEqual([]);
  });

  it('names every package with its adapter', () => {
    const files = readSources('src/**/*.ts').filter(({ path }) => !path.endsWith('.d.ts'));
    const packages = files
      .flatMap(({ imports }) => imports.map(({ to }) => to))
      .filter((to) => /^[@a-z]/.test(to));
    const names = new Set(packages.filter((to) => !/^(?:node:|src\/)/.test(to)).map(packageOf));
    for (const name of names) expect(text).toMatch(new RegExp(`^\\| ${name} \\| \`[\\w-]+/`, 'm'));
    expect(Object.keys(manifest.dependencies).filter((name) => !names.has(name))).toEqual([]);
  });
});

const snake = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

describe('docs/platform-settings.md', () => {
  const text = read('docs/platform-settings.md');

  it('lists every limit with its default, and none that does not exist', () => {
    const listed = [...text.matchAll(/^\| `limits\.(\w+)` \| (\d+) \|/gm)];
    expect(listed.map(([, key, value]) => [key, Number(value)])).toEqual(
      Object.entries(platformLimits).map(([key, value]) => [snake(key), value]),
    );
  });

  it('lists every other variable with its key', () => {
    const others = platformVariables().filter(({ key }) => !key.startsWith('limits.'));
    const rows = others.map((variable) => `| \`${variable.name}\` | \`${variable.key}\` |`);
    expect(rows.filter((row) => !text.includes(row))).toEqual([]);
  });

  it('has a valid example', () => {
    const [example = ''] = matches(text, /```json\n([^]*?)```/g);
    expect(parsePlatformConfig(JSON.parse(example), {})).toMatchObject({ ok: true });
  });
});

describe('docs/agent-server.md', () => {
  const text = read('docs/agent-server.md');

  it('lists every variable', () =>
    expect(agentVariables.filter((name) => !text.includes(`| \`${name}\``))).toEqual([]));

  it('has a valid example', () => {
    const [example = ''] = matches(text, /```json\n([^]*?)```/g);
    expect(parseGraphFile(JSON.parse(example), 26)).toMatchObject({ ok: true });
  });
});

describe('docs/configuration.md', () => {
  const bounds = [
    ...Object.entries(defaultLimits).map(([key, value]) => [`limits.${snake(key)}`, value] as const),
    ...Object.entries(defaultTimeouts).map(([key, value]) => [`timeouts.${snake(key)}`, value] as const),
  ];
  const text = read('docs/configuration.md');

  it('lists every limit and timeout with its default, and none that does not exist', () => {
    const listed = [...text.matchAll(/^\| `((?:limits|timeouts)\.\w+)` \| (\d+) \|/gm)];
    expect(listed.map(([, key, value]) => [key, Number(value)])).toEqual(bounds);
  });

  it('has the keys and defaults of the schema: npm run generate', () =>
    expect(text).toBe(configurationReference(text)));

  it('says what every setting means', () =>
    expect(matches(text, /^\| `(SALLYPORT_[A-Z_]+)` \|.*\| *\|$/gm)).toEqual([]));

  it('gets another default, a new row and loses an old one as the schema does', () => {
    const row = '| `SALLYPORT_SCRUB` | `scrub` | `head` |';
    const listen = /^\| `SALLYPORT_LISTEN` .*\n/m.exec(text)?.[0] ?? '';
    const outdated = text
      .replace(row, '| `SALLYPORT_SCRUB` | `scrub` | `body` |')
      .replace(listen, '| `SALLYPORT_GONE` | `gone` | | nothing |\n');
    const current = configurationReference(outdated);
    expect(current).toContain(row);
    expect(current).not.toContain('SALLYPORT_GONE');
    expect(current).toContain('| `SALLYPORT_LISTEN` | `listen` | `127.0.0.1:3128` |  |\n\n');
  });
});

describe('docs/errors.md', () => {
  it('is current: npm run generate', () => expect(read('docs/errors.md')).toBe(errorReference()));
});

describe('README.md', () => {
  it('has at most 120 lines', () =>
    expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(120));

  it('has a valid example', () => {
    const [example = ''] = matches(read('README.md'), /```json[^\n]*\n([^]*?)```/g);
    expect(parseProxyConfig(JSON.parse(example))).toMatchObject({ ok: true, warnings: [] });
  });
});
