import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runToEnd } from '../support/spawned-process.ts';

it('TLS 1.1 is refused to clients and to origins, even where Node is set up to allow it', async () => {
  const flags = ['--tls-min-v1.0', '--tls-cipher-list=ALL:@SECLEVEL=0'];
  const program = join(import.meta.dirname, 'old-protocol-program.ts');
  const { stdout, stderr } = await runToEnd(process.execPath, [...flags, program]);
  expect(stderr).toBe('');
  expect(stdout.trim().split('\n')).toEqual([
    'done',
    'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
  ]);
});
