// One small package in the form of each registry: npm, PyPI's simple index, cargo's sparse index, a Go module proxy, a Maven
// repository and an apt repository. Made once as files; npm's metadata apart, they are served as files.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { type OriginRequest, type OriginResponse, send, sendJson, writeHead } from './origin-response.ts';
import { zipOf } from './zip-archive.ts';

const hash = (algorithm: string, bytes: Buffer | string): string =>
  createHash(algorithm).update(bytes).digest('hex');

/** Writes all of them below the folder. */
export function createRegistries(folder: string): void {
  const write = (path: string, content: string | Buffer): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  const pack = (from: string, name: string, to: string): void =>
    void execFileSync('tar', ['-C', join(folder, from), '-czf', join(folder, to), name]);
  writeNpm(write, pack);
  writePypi(write);
  writeCrates(write, pack, folder);
  writeGoProxy(write);
  writeMaven(write);
  writeApt(write, folder);
}

type Write = (path: string, content: string | Buffer) => void;
type Pack = (from: string, name: string, to: string) => void;

function writeNpm(write: Write, pack: Pack): void {
  write('npm/package/package.json', '{"name":"small-package","version":"1.0.0","main":"index.js"}');
  write('npm/package/index.js', 'module.exports = 42;\n');
  pack('npm', 'package', 'npm/small-package-1.0.0.tgz');
}

function writePypi(write: Write): void {
  const info = 'small_package-1.0.0.dist-info';
  const files: Record<string, string> = {
    'small_package/__init__.py': 'value = 42\n',
    [`${info}/METADATA`]: 'Metadata-Version: 2.1\nName: small-package\nVersion: 1.0.0\n',
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  };
  const lines = Object.entries(files).map(([name, text]) => {
    const digest = createHash('sha256').update(text).digest('base64url');
    return `${name},sha256=${digest},${text.length}\n`;
  });
  const wheel = zipOf({ ...files, [`${info}/RECORD`]: `${lines.join('')}${info}/RECORD,,\n` });
  const file = 'small_package-1.0.0-py3-none-any.whl';
  write(`pypi/files/${file}`, wheel);
  const link = `<a href="https://pypi.test/files/${file}#sha256=${hash('sha256', wheel)}">${file}</a>`;
  write('pypi/simple/small-package/index.html', `<!DOCTYPE html><html><body>${link}</body></html>`);
}

function writeCrates(write: Write, pack: Pack, folder: string): void {
  const manifest = '[package]\nname = "small-crate"\nversion = "1.0.0"\nedition = "2021"\n';
  write('crates/source/small-crate-1.0.0/Cargo.toml', manifest);
  write('crates/source/small-crate-1.0.0/src/lib.rs', 'pub fn value() -> u32 { 42 }\n');
  const file = 'crates/files/small-crate-1.0.0.crate';
  write(file, '');
  pack('crates/source', 'small-crate-1.0.0', file);
  const cksum = hash('sha256', readFileSync(join(folder, file)));
  write('crates/index/config.json', '{"dl":"https://crates.test/files/{crate}-{version}.crate"}');
  const entry = { name: 'small-crate', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false };
  write('crates/index/sm/al/small-crate', `${JSON.stringify(entry)}\n`);
}

function writeGoProxy(write: Write): void {
  const at = 'goproxy/example.test/small/@v';
  const manifest = 'module example.test/small\n';
  write(`${at}/list`, 'v1.0.0\n');
  write(`${at}/v1.0.0.info`, '{"Version":"v1.0.0","Time":"2025-01-01T00:00:00Z"}');
  write(`${at}/v1.0.0.mod`, manifest);
  const inside = 'example.test/small@v1.0.0';
  const source = 'package small\n\nconst Value = 42\n';
  write(`${at}/v1.0.0.zip`, zipOf({ [`${inside}/go.mod`]: manifest, [`${inside}/small.go`]: source }));
}

function writeMaven(write: Write): void {
  const at = 'maven/test/small/library/1.0.0/library-1.0.0';
  const model = '<modelVersion>4.0.0</modelVersion><groupId>test.small</groupId>';
  const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">${model}<artifactId>library</artifactId><version>1.0.0</version></project>`;
  const jar = zipOf({ 'META-INF/MANIFEST.MF': 'Manifest-Version: 1.0\n' });
  for (const [file, content] of [
    ['pom', Buffer.from(pom)],
    ['jar', jar],
  ] as const) {
    write(`${at}.${file}`, content);
    write(`${at}.${file}.sha1`, hash('sha1', content));
  }
}

function writeApt(write: Write, folder: string): void {
  const control =
    'Package: small-package\nVersion: 1.0\nArchitecture: all\nMaintainer: Tests <tests@example.test>\nDescription: small\n';
  // dpkg-deb is there wherever apt is; elsewhere the row of apt is skipped.
  write('apt/source/DEBIAN/control', control);
  const file = 'small-package_1.0_all.deb';
  try {
    const args = ['--build', join(folder, 'apt/source'), join(folder, 'apt', file)];
    execFileSync('dpkg-deb', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const bytes = readFileSync(join(folder, 'apt', file));
  const entry = `${control}Filename: ./${file}\nSize: ${bytes.length}\nSHA256: ${hash('sha256', bytes)}\n`;
  write('apt/Packages', entry);
  const date = new Date().toUTCString().replace('GMT', '+0000');
  write(
    'apt/Release',
    `Date: ${date}\nSHA256:\n ${hash('sha256', entry)} ${Buffer.byteLength(entry)} Packages\n`,
  );
}

export function respondAsNpm(folder: string, request: OriginRequest, response: OriginResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'https://npm.test');
  const archive = readFileSync(join(folder, 'npm', 'small-package-1.0.0.tgz'));
  const type = { 'content-type': 'application/octet-stream' };
  if (pathname.endsWith('.tgz')) return send(response, 200, archive, type);
  if (pathname !== '/small-package') return sendJson(response, 404, { error: 'not found' });
  const time = '2025-01-01T00:00:00.000Z';
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
  const dist = {
    tarball: 'https://npm.test/small-package/-/small-package-1.0.0.tgz',
    shasum: hash('sha1', archive),
    integrity,
  };
  sendJson(response, 200, {
    name: 'small-package',
    'dist-tags': { latest: '1.0.0' },
    time: { created: time, modified: time, '1.0.0': time },
    versions: { '1.0.0': { name: 'small-package', version: '1.0.0', main: 'index.js', dist } },
  });
}

/** A file of a registry, by the path of the request. */
export function respondWithFile(folder: string, request: OriginRequest, response: OriginResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'https://files.test');
  const file = normalize(join(folder, decodeURIComponent(pathname)));
  const path = file.endsWith('/') ? `${file}index.html` : file;
  const isThere = path.startsWith(`${folder}/`) && statSync(path, { throwIfNoEntry: false })?.isFile();
  if (isThere !== true) return send(response, 404, '');
  const type = path.endsWith('.html') ? 'text/html' : 'application/octet-stream';
  const bytes = readFileSync(path);
  if (request.method !== 'HEAD') return send(response, 200, bytes, { 'content-type': type });
  writeHead(response, 200, { 'content-type': type, 'content-length': String(bytes.length) });
  response.end();
}
