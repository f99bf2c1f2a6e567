// Loads the native engine of jazzer.js where the system's C library is older than the one it was linked with (glibc
// 2.38; Debian 12 has 2.36). Preloaded by `scripts/fuzz.ts` into the process that fuzzes. The engine needs only two functions of
// the newer library, the C23 variants of strtol and strtoul, which differ only in parsing `0b101`. In a copy of the engine
// they are replaced by the old ones, so that the newer library is not required.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NEWER: readonly string[] = ['GLIBC_2.38', 'GLIBCXX_3.4.32'];
const PREFIX = '__isoc23_';

// ELF-64, little endian: https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html and the LSB's symbol versions.
const DYNSYM = 11;
const VERSYM = 0x6fffffff;
const VERNEED = 0x6ffffffe;
const SYMBOL_BYTES = 24;
const WEAK = 2;

type Section = {
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
};
/** One required version of a library: the offset of its entry, and the number by which symbols refer to it. */
type Need = { readonly at: number; readonly library: string; readonly name: string; readonly index: number };

const { platform, arch } = process;
if (platform === 'linux' && isOlder(glibcVersion(), [2, 38])) loadCopy();

function loadCopy(): void {
  const require = createRequire(createRequire(import.meta.url).resolve('@jazzer.js/core'));
  const path = join(
    require.resolve('@jazzer.js/fuzzer/package.json'),
    '..',
    'prebuilds',
    `fuzzer-${platform}-${arch}.node`,
  );
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-fuzz-engine-'));
  const copy = join(folder, 'engine.node');
  copyFileSync(path, copy);
  writeFileSync(copy, adapt(readFileSync(path)));
  const engine = new Module(path);
  process.dlopen(engine, copy);
  engine.loaded = true;
  require.cache[path] = engine;
  rmSync(folder, { recursive: true });
}

function adapt(elf: Buffer): Buffer {
  const sections = sectionsOf(elf);
  const find = (type: number): Section => {
    const found = sections.find((section) => section.type === type);
    if (found === undefined) throw new Error(`the engine has no section of type ${type}`);
    return found;
  };
  const [symbols, versions, needed] = [find(DYNSYM), find(VERSYM), find(VERNEED)];
  const names = sections[symbols.link]?.offset ?? 0;
  const needs = needsOf(elf, needed.offset, names);
  for (const { at, name } of needs) if (NEWER.includes(name)) elf.writeUInt16LE(WEAK, at + 4);
  const [oldest] = needs
    .filter(({ library, name }) => library === 'libc.so.6' && name.startsWith('GLIBC_'))
    .toSorted((a, b) => (isOlder(numbersOf(a.name), numbersOf(b.name)) ? -1 : 1));
  for (let i = 0; i * SYMBOL_BYTES < symbols.size; i += 1) {
    const at = symbols.offset + i * SYMBOL_BYTES;
    const name = elf.readUInt32LE(at);
    if (oldest === undefined || !textAt(elf, names + name).startsWith(PREFIX)) continue;
    elf.writeUInt32LE(name + PREFIX.length, at);
    elf.writeUInt16LE(oldest.index, versions.offset + i * 2);
  }
  return elf;
}

function sectionsOf(elf: Buffer): readonly Section[] {
  const start = Number(elf.readBigUInt64LE(40));
  return Array.from({ length: elf.readUInt16LE(60) }, (_, i) => {
    const at = start + i * elf.readUInt16LE(58);
    const number = (from: number): number => Number(elf.readBigUInt64LE(at + from));
    return {
      type: elf.readUInt32LE(at + 4),
      offset: number(24),
      size: number(32),
      link: elf.readUInt32LE(at + 40),
    };
  });
}

function needsOf(elf: Buffer, start: number, names: number): readonly Need[] {
  const needs: Need[] = [];
  for (let file = start, step = -1; step !== 0; file += step) {
    const library = textAt(elf, names + elf.readUInt32LE(file + 4));
    let at = file + elf.readUInt32LE(file + 8);
    for (let left = elf.readUInt16LE(file + 2); left > 0; left -= 1) {
      const name = textAt(elf, names + elf.readUInt32LE(at + 8));
      needs.push({ at, library, name, index: elf.readUInt16LE(at + 6) });
      at += elf.readUInt32LE(at + 12);
    }
    step = elf.readUInt32LE(file + 12);
  }
  return needs;
}

function textAt(elf: Buffer, at: number): string {
  return elf.toString('latin1', at, elf.indexOf(0, at));
}

function glibcVersion(): readonly number[] {
  const report = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  // musl reports none, and there is no prebuilt engine for it.
  return numbersOf(report.header.glibcVersionRuntime ?? '9999');
}

function numbersOf(version: string): readonly number[] {
  return [...version.matchAll(/\d+/g)].map(([digits]) => Number(digits));
}

function isOlder(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((number, i) => number !== b[i]);
  return at >= 0 && (a[at] ?? 0) < (b[at] ?? 0);
}
