// The config of a sidecar of boxes: what the operator wrote for all of them, and over it what makes it a child of the box host.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';

export type SidecarPlace = {
  /** Of the CA and the config: the same for each start. */
  readonly directory: string;
  /** New for each start: the process before may not have closed its own yet. */
  readonly socketPath: string;
};

export type SidecarFiles = { readonly configFile: string; readonly adminToken: string };

/** Writes the config and the tokens of one start. */
export async function writeSidecarFiles(
  { directory, socketPath }: SidecarPlace,
  operators: Readonly<Record<string, unknown>>,
): Promise<SidecarFiles> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const adminToken = randomBytes(32).toString('base64url');
  const adminTokenFile = await write(join(directory, 'admin-token'), adminToken);
  // Nobody has it: the main listener, which every sidecar has, serves no client.
  const mainTokenFile = await write(join(directory, 'main-token'), randomBytes(32).toString('base64url'));
  const document = {
    callback: { allow_private: false },
    ...operators,
    listen: '127.0.0.1:0',
    auth: { token_file: mainTokenFile },
    admin: { listen: `unix:${socketPath}`, token_file: adminTokenFile },
    state_dir: join(directory, 'state'),
    sandboxes: { namespaces: true },
    log: { level: 'info', records: true, when_blocked: 'refuse' },
    timeouts: { ...asObject(operators['timeouts']), drain_ms: DRAIN_MS },
  };
  return { configFile: await write(join(directory, 'config.json'), JSON.stringify(document)), adminToken };
}

/** A sidecar whose box host has ended serves for at most as long. */
const DRAIN_MS = 1_000;

/** The certificate that clients of the sidecar must trust. */
export function readCaPem(directory: string): Promise<string> {
  return readFile(join(directory, 'state', 'public', 'ca.pem'), 'utf8');
}

async function write(file: string, text: string): Promise<string> {
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
