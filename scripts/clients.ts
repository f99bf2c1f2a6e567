// `npm run clients`: installs public HTTP clients and runs each as a process behind `sallyport run`, against an origin that counts
// the requests with the credential; then without `run`, and some behind `proxy` with a token. Writes the table of docs/clients.md.
// `-- --only NAME,...` runs some clients or groups, `--list` lists them, `--install` only installs, `--verbose` shows why.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clientTable } from '../interop/clients/client-table.ts';
import { createSection, replaceSection, totalOf } from '../interop/clients/document.ts';
import { bareEnvironment } from '../interop/clients/command-line.ts';
import { cacheFolder, installFor, type Missing } from '../interop/clients/installation/installer.ts';
import { runInNamespaces } from '../interop/clients/namespaces.ts';
import { type Options, parseOptions } from '../interop/clients/options.ts';
import { startOrigin } from '../interop/clients/origin/origin.ts';
import { createRequestLedger } from '../interop/clients/origin/request-ledger.ts';
import { startTokenProxy, writeProxyFiles } from '../interop/clients/proxy-modes.ts';
import { createCredentials, createProxyConfig, hostNames, ORIGIN_ADDRESS } from '../interop/clients/rules.ts';
import { type RowResult, runRow } from '../interop/clients/suite.ts';
import { findFailures } from '../interop/clients/verdict.ts';
import { setup as buildProgram } from '../test/support/program-setup.ts';
import { createTestAuthority } from '../test/support/test-authority.ts';

const FOLDER = 'SALLYPORT_CLIENTS_FOLDER';
const root = join(import.meta.dirname, '..');
const args = process.argv.slice(2);
const options = parseOptions(args, clientTable);

if (options.isList)
  for (const { name, group, client } of options.rows) console.log(`${name}\t${group}\t${client}`);
// The origin may have connections of clients that were killed.
else if (options.isInside) process.exit(await runInside(options, process.env[FOLDER] ?? ''));
else process.exitCode = await runOutside(options);

/** With the network of the machine: installs, then starts this script again where there is none. */
async function runOutside({ rows, installsOnly }: Options): Promise<number> {
  console.log(`packages and built clients are in ${cacheFolder}`);
  const missing = await installFor(rows, (line) => console.log(line));
  for (const reason of new Set(missing.values())) console.log(`missing: ${reason}`);
  if (installsOnly) return 0;
  // The bundle, as users install it.
  await buildProgram();
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-clients-'));
  try {
    writeFileSync(join(folder, 'missing.json'), JSON.stringify([...missing]));
    process.env[FOLDER] = folder;
    const command = [process.execPath, join(root, 'scripts', 'clients.ts'), ...args, '--inside'];
    return runInNamespaces(command, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runInside({ rows, isWhole, isVerbose }: Options, folder: string): Promise<number> {
  const missing: Missing = new Map(JSON.parse(readFileSync(join(folder, 'missing.json'), 'utf8')));
  const authority = createTestAuthority();
  const credentials = createCredentials();
  const ledger = createRequestLedger(credentials);
  const files = { folder, program: process.env['SALLYPORT_TEST_PROGRAM'] ?? join(root, 'bin/sallyport.js') };
  await startOrigin({
    ...{ address: ORIGIN_ADDRESS, authority, ledger, names: hostNames },
    folder: join(folder, 'origin'),
  });
  writeProxyFiles(files, {
    proxyConfig: createProxyConfig(),
    secretLines: credentials.secretLines,
    upstreamCaPem: authority.certificatePem,
  });
  const hasToken = rows.some(({ token }) => token === true);
  await using tokenProxy = hasToken
    ? await startTokenProxy(files, bareEnvironment(undefined, folder))
    : undefined;
  const results: RowResult[] = [];
  for (const row of rows) {
    const result = await runRow(row, { files, ledger, tokenProxy }, missing);
    results.push(result);
    show(result, isVerbose);
  }
  return conclude(results, isWhole);
}

function show(result: RowResult, isVerbose: boolean): void {
  const { row, version, skipped, reason, cureReason, tokenReason, isGreenWithoutRun, http } = result;
  const state = skipped !== undefined ? 'skipped' : reason === undefined ? 'green' : 'red';
  console.log(`${state.padEnd(8)}${row.name} ${version}${http === '' ? '' : `, HTTP ${http}`}`);
  if (skipped !== undefined) return console.log(`        ${skipped}`);
  if (reason !== undefined && (isVerbose || row.cure === undefined)) console.log(`        ${reason}`);
  if (isGreenWithoutRun) console.log('        green without run');
  if (reason !== undefined && cureReason !== undefined) console.log(`        the cure: ${cureReason}`);
  if (tokenReason !== undefined) console.log(`        with a token: ${tokenReason}`);
}

function conclude(results: readonly RowResult[], isWhole: boolean): number {
  const total = totalOf(results);
  const { ran, green, cured, skipped } = total;
  console.log(`${ran} ran, ${green} green, ${cured} with their cure, ${skipped} skipped`);
  if (!isWhole) return green + cured === ran ? 0 : 1;
  const failures = findFailures(total);
  for (const failure of failures) console.error(failure);
  const page = join(root, 'docs', 'clients.md');
  writeFileSync(page, replaceSection(readFileSync(page, 'utf8'), createSection(results)));
  return failures.length === 0 ? 0 : 1;
}
