import { describe, expect, it } from 'vitest';
import { boxUser, caBundlePath, etcFiles } from '../../../src/box-host/bubblewrap/etc-files.ts';

const files = etcFiles({ hostname: 'box', caBundle: 'PEM\n' });
const linesOf = (path: string): readonly string[] => (files.get(path) ?? '').split('\n');

describe('the files of /etc', () => {
  it('have one account that can log in', () => {
    const usable = linesOf('/etc/passwd').filter((line) => line !== '' && !line.endsWith('/nologin'));
    expect(usable).toEqual([`box:x:${boxUser.uid}:${boxUser.gid}:box:${boxUser.home}:/bin/sh`]);
  });

  it('name no DNS server', () => {
    expect(linesOf('/etc/resolv.conf').filter((line) => line.startsWith('nameserver'))).toEqual([]);
    expect(linesOf('/etc/nsswitch.conf')).toContain('hosts: files');
  });

  it('name the box and localhost', () => expect(linesOf('/etc/hosts')).toContain('127.0.0.1 localhost box'));

  it('have the certificates where programs look for them', () =>
    expect(files.get(caBundlePath)).toBe('PEM\n'));
});
