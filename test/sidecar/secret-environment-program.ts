// A stand-in for the command, for secret-environment.test.ts: starts as it does, says what it sees, and stays.
import { readFileSync } from 'node:fs';
import { claimSecrets, handOverSecretVariables } from '../../src/sidecar/secret-environment.ts';
import { loadWorkspaceSecrets } from '../../src/sidecar/sandboxes/workspace-secrets.ts';

// Here rather than among the arguments, which must not hold it.
const EXPECTED = 'canary-e09d55';

const descriptor = process.argv.indexOf('--secrets-fd');
const fd = descriptor === -1 ? undefined : Number(process.argv[descriptor + 1]);
handOverSecretVariables(fd);
const handedOver = process.env['SALLYPORT_HANDED_SECRETS'] ?? '';
const secrets = loadWorkspaceSecrets({ handed: claimSecrets(process.env), fd }, process.env);
const says = {
  msg: 'ready',
  handoverFile: handedOver.slice(handedOver.indexOf(':') + 1),
  names: secrets.names,
  hasExpectedValue: secrets.lookup('TOKEN')?.equals(EXPECTED) ?? false,
  variables: Object.keys(process.env).filter((name) => name.startsWith('SALLYPORT_')),
  arguments: process.argv.slice(2),
  execArguments: process.execArgv,
  stdin: fd === 0 ? '' : readFileSync(0, 'utf8'),
};
process.stdout.write(`${JSON.stringify(says)}\n`);
setInterval(() => undefined, 60_000);
