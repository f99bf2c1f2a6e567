import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultMounts, detectCapabilities } from '../../../src/box-host/bubblewrap/capabilities.ts';
import { capabilities, missing, titled } from '../isolation.ts';

describe('what a machine can hold', () => {
  it('is said in sentences, each with what to do', () => {
    for (const obstacle of capabilities.obstacles) expect(obstacle).toMatch(/: \S/);
  });

  it('is found out without leaving anything', async () => {
    await detectCapabilities();
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('sallyport-boxes-'))).toEqual([]);
    expect(existsSync(`/sys/fs/cgroup/pids/sallyport-trial-${process.pid}`)).toBe(false);
  });

  it.skipIf(missing !== undefined)(titled('is everything, as root on a Debian machine'), () => {
    expect(capabilities).toMatchObject({ privilege: 'root', obstacles: [], storage: 'loop', warnings: [] });
    expect(capabilities.bubblewrap).toMatch(/^\d+\.\d+/);
    expect(capabilities.limits.missing).toEqual([]);
  });
});

it('the mounts of root lie where every user can enter', () => {
  expect(defaultMounts('/private/data', 'root')).toBe('/run/sallyport-boxes');
  expect(defaultMounts('/private/data', 'user')).toBe(join('/private/data', 'mounts'));
});
