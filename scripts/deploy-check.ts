// The manifests of deploy/ and the unit of systemd, checked by those who read them: an API server of Kubernetes by a dry run, and
// systemd-analyze. Nothing is created. `npm run deploy:check` with KUBECONFIG, and kubectl in PATH.
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root: string = join(import.meta.dirname, '..');

/** Above it, systemd calls the exposure of a service "medium". */
const MAX_EXPOSURE = 20;

type Outcome = 'passed' | 'failed' | 'not run';
const outcomes: Outcome[] = [checkManifests(), checkUnit()];
process.exitCode = outcomes.includes('failed') ? 1 : 0;

/** The namespace exists only in the dry run of one process, so it is asked for one that every cluster has. */
function checkManifests(): Outcome {
  if (process.env['KUBECONFIG'] === undefined)
    return report(
      'manifests',
      'not run',
      'set KUBECONFIG to the file of a cluster, whose version is at least 1.29',
    );
  const files = globSync('deploy/kubernetes/*.yaml', { cwd: root });
  const manifests = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n---\n');
  const input = manifests.replaceAll(/^( +namespace: )agents$/gm, '$1default');
  const args = ['apply', '--dry-run=server', '--validate=strict', '-f', '-'];
  const { status, stdout, stderr, error } = spawnSync('kubectl', args, { input, encoding: 'utf8' });
  if (error !== undefined)
    return report('manifests', 'failed', `kubectl cannot be started: ${error.message}`);
  return report('manifests', status === 0 ? 'passed' : 'failed', stdout + stderr);
}

/** systemd wants the programs of a unit to be there: those of this process take their places. */
function checkUnit(): Outcome {
  const scratch = mkdtempSync(join(tmpdir(), 'sallyport-unit-'));
  const unit = join(scratch, 'sallyport.service');
  try {
    const text = readFileSync(join(root, 'deploy', 'sallyport.service'), 'utf8');
    writeFileSync(unit, text.replaceAll('/opt/sallyport/node_modules/.bin/node', process.execPath));
    const verified = analyze(['verify', '--man=no', unit]);
    if (verified === undefined) return report('unit', 'not run', 'systemd-analyze is not installed');
    const rated = analyze(['security', '--offline=yes', `--threshold=${MAX_EXPOSURE}`, '--no-pager', unit]);
    const isSafe = verified.status === 0 && verified.stderr === '' && rated?.status === 0;
    const exposure = rated?.stdout.trim().split('\n').at(-1) ?? '';
    return report(
      'unit',
      isSafe ? 'passed' : 'failed',
      `${verified.stderr}${rated?.stderr ?? ''}${exposure}`,
    );
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function analyze(args: readonly string[]) {
  const result = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
  return result.error === undefined ? result : undefined;
}

function report(what: string, outcome: Outcome, details: string): Outcome {
  console.log(`${what}: ${outcome}\n${details.trim().replaceAll(/^/gm, '  ')}`);
  return outcome;
}
