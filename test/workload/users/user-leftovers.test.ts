import { lstat } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { requireCommand, runCommand } from '../../../src/box-host/command.ts';
import { clearUser, parseIpcList } from '../../../src/workload/users/user-leftovers.ts';
import { asUser } from '../../../src/workload/users/user-processes.ts';
import { isMissing, titled } from '../test-workloads.ts';

const SHM = `       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime
         0         12  1600                  4096   1     1      0  1005  1005  1005  1005          0
       123         13  1600                  4096   1     1      0     0     0  1005  1005          0
       124         14  1600                  4096   1     1      0     0     0     0     0          0
`;
const MSG = `       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime
         7          3   600           0          0     0     0  1005  1005  1005  1005          0
`;

describe('what a user leaves', () => {
  it('has the objects that it owns or made', () => {
    expect(parseIpcList(SHM, 1005)).toEqual(['12', '13']);
    expect(parseIpcList(MSG, 1005)).toEqual(['3']);
    expect(parseIpcList(SHM, 1)).toEqual([]);
    expect(parseIpcList('', 1005)).toEqual([]);
  });

  it.skipIf(isMissing('user'))(titled('is removed, and nothing of others', 'user'), async () => {
    const uid = 470_000 + (process.pid % 10_000);
    const user = { uid, gid: uid };
    const [name, key] = [`sallyport-test-${process.pid}`, 0x7b11 + process.pid];
    // A link to a file of somebody else, and a directory that nobody may enter.
    const script = `
      for place in /tmp /var/tmp /dev/shm; do
        mkdir -p "$place/$1/below" && echo x >"$place/$1/below/file" && ln -s /etc/hostname "$place/$1/link"
      done
      chmod 0 "/tmp/$1/below"
      exec /usr/bin/python3 -c 'import ctypes, sys; assert ctypes.CDLL(None).shmget(int(sys.argv[1]), 4096, 0o1600) >= 0' "$2"`;
    await requireCommand('leaving', asUser(user, ['/bin/sh', '-c', script, 'sh', name, String(key)]));
    await clearUser(user);
    for (const place of ['/tmp', '/var/tmp', '/dev/shm'])
      await expect(lstat(`${place}/${name}`)).rejects.toThrow('ENOENT');
    expect((await runCommand(['ipcrm', '-M', String(key)])).code).not.toBe(0);
    expect((await lstat('/etc/hostname')).isFile()).toBe(true);
  });
});
