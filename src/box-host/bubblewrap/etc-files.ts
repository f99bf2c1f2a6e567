// The files of a box that are ours and not the snapshot's: its accounts, its names and the certificates that it trusts.
// A box may change its copies: they protect nothing.

/** The only account of a box that can run anything. */
export const boxUser = { name: 'box', uid: 1000, gid: 1000, home: '/home/box' } as const;

/** Where programs of Debian look for certificates; the variables of the environment name it as well. */
export const caBundlePath = '/etc/ssl/certs/ca-certificates.crt';

const NOBODY = 65_534;

/** The content of each file, by its path from the root of the box. */
export function etcFiles({
  hostname,
  caBundle,
}: {
  readonly hostname: string;
  /** PEM. */
  readonly caBundle: string;
}): ReadonlyMap<string, string> {
  const { name, uid, gid, home } = boxUser;
  return new Map([
    [
      '/etc/passwd',
      lines(
        'root:x:0:0:root:/root:/usr/sbin/nologin',
        `${name}:x:${uid}:${gid}:${name}:${home}:/bin/sh`,
        `nobody:x:${NOBODY}:${NOBODY}:nobody:/nonexistent:/usr/sbin/nologin`,
      ),
    ],
    ['/etc/group', lines('root:x:0:', `${name}:x:${gid}:`, `nogroup:x:${NOBODY}:`)],
    ['/etc/hosts', lines(`127.0.0.1 localhost ${hostname}`, '::1 localhost ip6-localhost ip6-loopback')],
    // The proxy resolves names. Without a server and without `dns` below, a lookup fails at once instead of timing out.
    ['/etc/resolv.conf', lines('options timeout:1 attempts:1')],
    ['/etc/nsswitch.conf', lines('passwd: files', 'group: files', 'hosts: files')],
    [caBundlePath, caBundle],
  ]);
}

function lines(...all: readonly string[]): string {
  return `${all.join('\n')}\n`;
}
