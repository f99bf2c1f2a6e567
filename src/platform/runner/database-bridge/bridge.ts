// The only way of a deployment to PostgreSQL: a socket that leads to its own database, as its own role. Whoever finds the password of
// another role, or of the platform, cannot use it here. The server itself is not in the namespace of the deployment.
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describeBug, type Log } from '../../../base/log.ts';
import { SIZE_LIMIT } from '../../store/database-error.ts';
import type { ConnectionBudget } from './connection-budget.ts';
import { relay } from './relay.ts';
import { dialServer, type ServerAddress } from './server-dialing.ts';
import {
  type FirstMessage,
  formatCancel,
  formatFatalError,
  formatStartup,
  parseFirstMessage,
  type Startup,
} from './startup-message.ts';

export type BridgeOptions = {
  /** Created for the socket, whose name is that of a PostgreSQL server at port 5432: this directory is the `host` of clients. */
  readonly directory: string;
  /** Who may enter the directory besides this user, for clients with a group of their own. */
  readonly groupId?: number | undefined;
  readonly server: ServerAddress;
  readonly database: string;
  readonly user: string;
  /** By which a proxy of a provider chooses the server: goes before the options of the client. */
  readonly routing?: string | undefined;
  readonly connections: ConnectionBudget;
  readonly log: Pick<Log, 'warn'>;
  /** Until the server has let a client in. */
  readonly loginMs?: number;
};

export type DatabaseBridge = {
  readonly connections: number;
  /** Of a database that is too large: cuts the connections, and refuses others with this reason until it is undefined again. */
  refuseAll(reason: string | undefined): void;
  /** Cuts the connections. */
  close(): Promise<void>;
};

const LOGIN_MS = 30_000;

/** Throws an Error of the file system. */
export async function openDatabaseBridge(options: BridgeOptions): Promise<DatabaseBridge> {
  const bridge = new Bridge(options);
  await bridge.listen();
  return bridge;
}

class Bridge implements DatabaseBridge {
  readonly #options: BridgeOptions;
  readonly #clients = new Set<Socket>();
  /** Of the connections that are open: nobody cancels a query of another deployment. */
  readonly #keys = new Set<string>();
  #refusal: string | undefined;
  readonly #listener = createServer({ pauseOnConnect: true }, (client) => this.#accept(client));

  constructor(options: BridgeOptions) {
    this.#options = options;
    // Those that are refused are counted too, until they have read why.
    this.#listener.maxConnections = 2 * options.connections.perDeployment;
  }

  async listen(): Promise<void> {
    const { directory, groupId } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, '.s.PGSQL.5432');
    // Left by a process that was killed.
    await rm(path, { force: true });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#listener.once('error', reject);
    this.#listener.listen({ path }, resolve);
    await promise;
    this.#listener.on('error', (error) =>
      this.#options.log.warn(describeBug(error), 'a database bridge failed'),
    );
    if (groupId !== undefined) for (const one of [directory, path]) await chown(one, -1, groupId);
    await chmod(path, groupId === undefined ? 0o600 : 0o660);
    await chmod(directory, groupId === undefined ? 0o700 : 0o710);
  }

  get connections(): number {
    return this.#clients.size;
  }

  refuseAll(reason: string | undefined): void {
    this.#refusal = reason;
    if (reason !== undefined) for (const client of this.#clients) client.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    for (const client of this.#clients) client.destroy();
    await closed;
  }

  #accept(client: Socket): void {
    client.on('error', () => undefined);
    if (this.#refusal !== undefined) return refuse(client, '53100', this.#refusal, SIZE_LIMIT);
    const place = this.#options.connections.take(this.#clients.size);
    if (place === undefined) return refuse(client, '53300', 'too many connections of this deployment');
    this.#clients.add(client);
    const limit = setTimeout(() => client.destroy(), this.#options.loginMs ?? LOGIN_MS);
    client.once('close', () => {
      clearTimeout(limit);
      place.release();
      this.#clients.delete(client);
    });
    this.#serve(client, () => clearTimeout(limit)).catch((error: unknown) => {
      this.#options.log.warn(describeBug(error), 'a connection to the database of a deployment failed');
      refuse(client, '08006', 'the database cannot be reached');
    });
  }

  async #serve(client: Socket, onReady: () => void): Promise<void> {
    const first = await readFirstMessage(client);
    if (first === undefined) return;
    if (first.kind === 'invalid') return refuse(client, '08P01', first.reason);
    if (first.kind === 'cancel') return this.#cancel(client, first.key);
    const startup = this.#decide(first.startup);
    if (startup === undefined)
      return refuse(client, '28000', 'a deployment connects to its own database, as its own role');
    const server = await dialServer(this.#options.server);
    if (client.destroyed) return void server.destroy();
    this.#connect(client, server, onReady);
    server.write(formatStartup(startup));
  }

  /** What is sent to the server; undefined: nothing. */
  #decide({ minorVersion, parameters }: Startup): Startup | undefined {
    const { user, database, routing } = this.#options;
    if (parameters.get('user') !== user || parameters.get('database') !== database) return undefined;
    // A connection for replication reads more than a database.
    if (parameters.has('replication')) return undefined;
    if (routing === undefined) return { minorVersion, parameters };
    const options = `${routing} ${parameters.get('options') ?? ''}`.trim();
    return { minorVersion, parameters: new Map([...parameters, ['options', options]]) };
  }

  #connect(client: Socket, server: Socket, onReady: () => void): void {
    const own = new Set<string>();
    relay(client, server, {
      onReady,
      onKey: (key) => {
        own.add(key);
        this.#keys.add(key);
      },
      onClosed: () => {
        for (const key of own) this.#keys.delete(key);
      },
    });
  }

  /** It ends the connection, as a server does, whether there is something to cancel or not. */
  async #cancel(client: Socket, key: string): Promise<void> {
    if (this.#keys.has(key)) {
      const server = await dialServer(this.#options.server);
      server.end(formatCancel(key));
      server.resume();
      client.once('close', () => server.destroy());
      await new Promise((resolve) => server.once('close', resolve));
    }
    client.destroy();
  }
}

function refuse(client: Socket, code: string, message: string, constraint?: string): void {
  if (client.destroyed) return;
  client.end(formatFatalError(code, message, constraint));
  client.resume();
  // One that does not close its side.
  const timer = setTimeout(() => client.destroy(), REFUSED_MS);
  client.once('close', () => clearTimeout(timer));
}

const REFUSED_MS = 2_000;
/** One of each kind of encryption is asked for. */
const MAX_ENCRYPTION_REQUESTS = 2;

type Decided = Exclude<FirstMessage, { kind: 'incomplete' | 'encryption' }>;

/** Puts back what follows it. Undefined: the client left. */
async function readFirstMessage(client: Socket): Promise<Decided | undefined> {
  let waiting = Buffer.alloc(0);
  let requests = 0;
  const { promise, resolve } = Promise.withResolvers<Decided | undefined>();
  const onReadable = (): void => {
    for (;;) {
      const first = parseFirstMessage(waiting);
      if (
        first.kind === 'encryption' &&
        requests < MAX_ENCRYPTION_REQUESTS &&
        waiting.length === first.length
      ) {
        requests += 1;
        waiting = Buffer.alloc(0);
        client.write('N');
      } else if (first.kind === 'encryption') {
        resolve({ kind: 'invalid', reason: 'a client asks for encryption once, and waits for the response' });
        return;
      } else if (first.kind !== 'incomplete') {
        if (first.kind === 'startup') client.unshift(waiting.subarray(first.length));
        resolve(first);
        return;
      }
      const chunk = client.read() as Buffer | null;
      if (chunk === null) return;
      waiting = Buffer.concat([waiting, chunk]);
    }
  };
  const onGone = (): void => resolve(undefined);
  client.on('readable', onReadable).once('close', onGone).once('end', onGone);
  const first = await promise;
  client.off('readable', onReadable).off('close', onGone).off('end', onGone);
  return first;
}
