// The TLS settings of DATABASE_URL, with the meanings that libpq gives them.
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import type { Connection } from './database.ts';

/** By libpq's names: sslmode, sslrootcert, sslcert, sslkey, sslnegotiation, channel_binding. */
export type TlsSettings = Readonly<Record<string, string>>;

type Files = { readonly ca?: string; readonly cert?: string; readonly key?: string };

/**
 * A string says what is wrong. A server on another machine requires a mode: with libpq's own default, passwords and keys
 * would be sent in plaintext to a server that does not offer encryption.
 */
export function readTls(
  host: string,
  { sslmode, sslrootcert, sslcert, sslkey, sslnegotiation, channel_binding = 'disable' }: TlsSettings,
): Pick<Connection, 'ssl' | 'sslnegotiation' | 'enableChannelBinding'> | string {
  const isSystem = sslrootcert === 'system';
  if (isSystem && sslmode !== 'verify-full') return 'must set sslmode to verify-full for sslrootcert=system';
  const files = readFiles({
    ...(sslrootcert === undefined || isSystem ? {} : { ca: ['sslrootcert', sslrootcert] }),
    ...(sslcert === undefined ? {} : { cert: ['sslcert', sslcert] }),
    ...(sslkey === undefined ? {} : { key: ['sslkey', sslkey] }),
  });
  if (typeof files === 'string') return files;
  const ssl = sslOf(host, sslmode, files);
  if (typeof ssl === 'string') return ssl;
  if (sslnegotiation !== undefined && sslnegotiation !== 'postgres' && sslnegotiation !== 'direct')
    return 'must set sslnegotiation to postgres or direct';
  if (!['require', 'prefer', 'disable'].includes(channel_binding))
    return 'must set channel_binding to require, prefer or disable';
  if (ssl === false && (channel_binding === 'require' || sslnegotiation === 'direct'))
    return 'must set an sslmode with TLS for channel_binding=require and sslnegotiation=direct';
  return {
    ssl,
    ...(sslnegotiation === undefined ? {} : { sslnegotiation }),
    // PostgreSQL detects a client that could bind and was made not to (RFC 5802 §6).
    ...(channel_binding === 'disable' ? {} : { enableChannelBinding: true }),
  };
}

/** `require` encrypts without authenticating the server, unless a root certificate is named. */
function sslOf(host: string, mode: string | undefined, files: Files): Connection['ssl'] | string {
  const isLocal =
    host.startsWith('/') ||
    host === 'localhost' ||
    host === '::1' ||
    (isIPv4(host) && host.startsWith('127.'));
  const anyName = { ...files, checkServerIdentity: () => undefined };
  switch (mode) {
    case undefined:
      return isLocal ? false : 'must set sslmode to verify-full, verify-ca, require or disable';
    case 'disable':
      return false;
    case 'require':
      return files.ca === undefined ? { ...files, rejectUnauthorized: false } : anyName;
    case 'verify-ca':
      return anyName;
    case 'verify-full':
      return files;
    default:
      return 'must set sslmode to one of verify-full, verify-ca, require, disable';
  }
}

function readFiles(
  named: Readonly<Record<string, readonly [setting: string, file: string]>>,
): Files | string {
  const files: Record<string, string> = {};
  for (const [name, [setting, file]] of Object.entries(named))
    try {
      files[name] = readFileSync(file, 'utf8');
    } catch {
      return `must name a readable file as ${setting}`;
    }
  return files;
}
